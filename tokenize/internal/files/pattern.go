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

// Unsupported returns the error for an unsupported part of tokenizer.json.
func Unsupported(format string, args ...any) error {
	return tokenize.Unsupported(TokenizerJSON, fmt.Sprintf(format, args...))
}

// Pattern is the search pattern of a component in tokenizer.json: a string or a regular expression.
type Pattern struct {
	String string `json:"String"`
	Regex  string `json:"Regex"`
}

// GPT2 is the word pattern of GPT-2, used by the ByteLevel component.
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// lookahead ends the patterns of many tokenizers: a run of white space leaves its last character to the
// next word.
const lookahead = `\s+(?!\S)|\s+`

// Compile returns a function that finds the matches of p from left to right, as character positions
// [start, end). Empty matches are omitted.
//
// Regular expressions use the syntax of package regexp and may end in lookahead.
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
		i := 0 // character index
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
				end = min(end+1, len(chars)) // skip an empty match
			} else {
				found = append(found, [2]int{start, end})
			}
			b = at[end]
		}
		return found
	}, nil
}

// looksAround reports whether a regular expression tests for the beginning of the text or of a word. A
// search that starts inside a text would get these wrong.
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

// withClasses expands the character classes whose members differ between Go and the reference.
func withClasses(pattern string) string {
	var out strings.Builder
	members, inside := classes(), false // inside brackets
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

// classes maps each class to its members as written between brackets.
var classes = sync.OnceValue(func() map[string]string {
	list := map[string]string{`\s`: `\t-\r\x{85}\pZ`, `\p{L}`: `\pL`, `\p{N}`: `\pN`}
	for name, late := range map[string]*unicode.RangeTable{`\p{L}`: aligned.LateLetter, `\p{N}`: aligned.LateNumber} {
		for _, r := range late.R16 {
			list[name] += fmt.Sprintf(`\x{%X}-\x{%X}`, r.Lo, r.Hi)
		}
		for _, r := range late.R32 {
			list[name] += fmt.Sprintf(`\x{%X}-\x{%X}`, r.Lo, r.Hi)
		}
	}
	return list
})
