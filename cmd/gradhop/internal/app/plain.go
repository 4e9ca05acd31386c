package app

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plain returns text unchanged if it prints on one line, and escaped otherwise: names in files are
// arbitrary.
func Plain(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	q := strconv.Quote(text)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
