package component

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dlclark/regexp2/v2"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// pattern is the search pattern of a component: a string or a regular expression.
type pattern struct {
	String string `json:"String"`
	Regex  string `json:"Regex"`
}

// compile returns a function that finds the matches of p from left to right, as positions of their first
// character and of the one after their last. Empty matches are omitted.
func (p pattern) compile() (func([]aligned.Char) [][]int, error) {
	source := regexp2.Escape(p.String)
	if p.Regex != "" {
		source = withClasses(p.Regex)
	}
	re, err := regexp2.Compile(source, regexp2.Multiline) // as in Oniguruma, ^ and $ match at lines
	if err != nil {
		return nil, tokenize.Unsupported("regular expression %q", p.Regex)
	}
	return func(chars []aligned.Char) [][]int {
		found, err := re.FindAllRunesIndex(aligned.Runes(chars), -1)
		if err != nil {
			panic(err) // neither its time nor its memory is limited
		}
		return slices.DeleteFunc(found, func(m []int) bool { return m[0] == m[1] })
	}, nil
}

var classOrBracket = regexp.MustCompile(`\\[pP]\{\w+\}|\\.|[\[\]]`)

// withClasses expands the character classes whose members differ between Go and the reference.
func withClasses(pattern string) string {
	inside := false // brackets
	return classOrBracket.ReplaceAllStringFunc(pattern, func(name string) string {
		members, ok := classes()[name]
		switch {
		case ok && inside:
			return members
		case ok:
			return "[" + members + "]"
		case name == "[" || name == "]":
			inside = name == "["
		}
		return name
	})
}

// classes maps each class to its members as written between brackets.
var classes = sync.OnceValue(func() map[string]string {
	list := map[string]string{}
	for name, class := range map[string]aligned.Class{`\p{L}`: aligned.Letter, `\p{N}`: aligned.Number} {
		var members strings.Builder
		for _, run := range class() {
			fmt.Fprintf(&members, "%c-%c", run[0], run[1])
		}
		list[name] = members.String()
	}
	list[`\w`] = list[`\p{L}`] + list[`\p{N}`] + `\p{M}\p{Pc}`
	return list
})
