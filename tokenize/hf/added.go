package hf

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

type added struct {
	literals *files.Literals
	tokens   map[int32]files.AddedToken
}

// match is an occurrence of the added token id: bytes [start, end) of a text.
type match struct {
	start, end int
	id         int32
}

// newAdded returns the finder of tokens in the raw or in the normalized text; spell maps a token to its
// spelling there.
func newAdded(tokens []files.AddedToken, spell func(string) string) added {
	a := added{tokens: map[int32]files.AddedToken{}}
	ids := map[string]int32{}
	for _, t := range tokens {
		if text := spell(t.Content); text != "" {
			ids[text] = t.ID
			a.tokens[t.ID] = t
		}
	}
	a.literals = files.NewLiterals(ids)
	return a
}

// find returns the added tokens of text from left to right. A match includes the white space that the
// token strips.
func (a added) find(text string) (found []match) {
	last := 0 // end of the previous match
	for pos := 0; pos < len(text); {
		start, end, id := a.literals.Next(text, pos)
		if start == end {
			break
		}
		pos = end
		t := a.tokens[id]
		if t.SingleWord {
			before, _ := utf8.DecodeLastRuneInString(text[:start])
			after, _ := utf8.DecodeRuneInString(text[end:])
			if start > 0 && aligned.Word.Has(before) || end < len(text) && aligned.Word.Has(after) {
				continue
			}
		}
		if t.LStrip {
			start = max(last, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		found = append(found, match{start, end, id})
		last = end
	}
	return found
}
