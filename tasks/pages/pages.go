// Package pages has what the pages that commands write have in common: the style, figures
// and tables. A page is one file that loads nothing from anywhere and runs no script.
package pages

import (
	_ "embed"
	"encoding/base64"
	"html/template"
)

//go:embed shared.html
var shared string

// Parse reads the template of a page. It can use three others: "head", with the page's
// title, which ends before body; "figures" with a list of Figure; and "settings" with a
// list of Setting. What it defines as "style" comes after the style of all pages. A
// template that cannot be read is a panic: it is a part of the program.
func Parse(text string) *template.Template {
	return template.Must(template.Must(template.New("shared").Parse(shared)).New("page").Parse(text))
}

// Setting is a line of a table of settings.
type Setting struct{ Name, Value string }

// Figure is a drawing with what is to be said about it.
type Figure struct {
	Title, Caption string
	SVG            template.HTML
}

// DataURL is the address of a picture that is in the page itself.
func DataURL(mime string, data []byte) template.URL {
	return template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data))
}
