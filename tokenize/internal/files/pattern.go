package files

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// Unsupported is the error about a part of tokenizer.json.
func Unsupported(format string, args ...any) error {
	return tokenize.Unsupported(TokenizerJSON, fmt.Sprintf(format, args...))
}

// Pattern is what a component of tokenizer.json looks for.
type Pattern struct {
	String string `json:"String"`
	Regex  string `json:"Regex"`
}

// GPT2 is the pattern of words of GPT-2, which the ByteLevel component uses.
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// lookahead is how the patterns of many tokenizers end: a run of white space leaves its last
// character to the word that follows.
const lookahead = `\s+(?!\S)|\s+`

// Compile returns a function that finds the matches as character positions [start, end), from left
// to right. An empty match is left out.
//
// Regular expressions are those of package regexp, and may end in lookahead.
func (p Pattern) Compile() (func([]aligned.Char) [][2]int, error) {
	source := regexp.QuoteMeta(p.String)
	if p.Regex != "" {
		source = p.Regex
	}
	head, ahead := strings.CutSuffix(source, lookahead)
	if ahead {
		source = head + `(\s+)`
	}
	re, err := regexp.Compile(withClasses(source))
	if err != nil || looksAround(source) {
		return nil, Unsupported("regular expression %q", p.Regex)
	}
	return func(chars []aligned.Char) (found [][2]int) {
		text, at := aligned.String(chars), aligned.Offsets(chars)
		i := 0 // character
		index := func(b int) int {
			for at[i] < b {
				i++
			}
			return i
		}
		for b := 0; b < len(text); {
			m := re.FindStringSubmatchIndex(text[b:])
			if m == nil {
				break
			}
			start, end := index(b+m[0]), index(b+m[1])
			if ahead && m[2] >= 0 && end < len(chars) && end-start > 1 {
				end--
				i = end
			}
			if start == end {
				end = min(end+1, len(chars)) // an empty match: go on behind the next character
			} else {
				found = append(found, [2]int{start, end})
			}
			b = at[end]
		}
		return found
	}, nil
}

// looksAround reports whether a regular expression asks for the beginning of the text or of a word,
// which a search from the middle of a text would get wrong.
func looksAround(source string) bool {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return true
	}
	list := []*syntax.Regexp{tree}
	for len(list) > 0 {
		switch list[0].Op {
		case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
			return true
		}
		list = append(list[1:], list[0].Sub...)
	}
	return false
}

// withClasses spells out the classes of characters whose members differ between Go and the
// reference.
func withClasses(pattern string) string {
	var out strings.Builder
	members, inside := classes(), false // inside of brackets
	for len(pattern) > 0 {
		name := pattern[:1]
		if name == `\` && len(pattern) > 1 {
			name = pattern[:2]
			if end := strings.IndexByte(pattern, '}'); (name == `\p` || name == `\P`) && end > 0 {
				name = pattern[:end+1]
			}
		}
		pattern = pattern[len(name):]
		switch members, ok := members[name]; {
		case ok && inside:
			name = members
		case ok:
			name = "[" + members + "]"
		case name == "[":
			inside = true
		case name == "]":
			inside = false
		}
		out.WriteString(name)
	}
	return out.String()
}

// classes are the members of classes of characters, as they stand between brackets.
var classes = sync.OnceValue(func() map[string]string {
	list := map[string]string{}
	for name, table := range map[string]*unicode.RangeTable{`\s`: aligned.Blank, `\p{L}`: aligned.Letter, `\p{N}`: aligned.Number} {
		var in strings.Builder
		for _, r := range table.R16 {
			fmt.Fprintf(&in, `\x{%X}-\x{%X}`, r.Lo, r.Hi)
		}
		for _, r := range table.R32 {
			fmt.Fprintf(&in, `\x{%X}-\x{%X}`, r.Lo, r.Hi)
		}
		list[name] = in.String()
	}
	return list
})
