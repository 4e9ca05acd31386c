package hf

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// addedToken is an entry of "added_tokens" in tokenizer.json. It is matched in the text before the
// model runs. Its id may lie outside the model's vocabulary.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// finder finds added tokens by their spelling.
type finder struct {
	tokens map[string]addedToken
	first  [256]bool // first bytes of the spellings
	max    int       // length of the longest one
}

// newFinder returns a finder of tokens as spell writes them; it leaves out those that have no spelling.
func newFinder(tokens []addedToken, spell func(string) string) *finder {
	f := &finder{tokens: map[string]addedToken{}}
	for _, t := range tokens {
		if text := spell(t.Content); text != "" {
			f.tokens[text] = t
			f.first[text[0]] = true
			f.max = max(f.max, len(text))
		}
	}
	return f
}

// match is an occurrence of the added token id: bytes [start, end) of a text.
type match struct {
	start, end int
	id         int32
}

// find returns the added tokens of text from left to right: the leftmost first, the longest of those that
// start at the same place. A match includes the white space that the token strips.
func (f *finder) find(text string) (found []match) {
	last := 0 // end of the previous match
	for pos := 0; pos < len(text); {
		t, start, end := f.next(text, pos)
		pos = end
		if start == end {
			break
		}
		if t.SingleWord {
			before, _ := utf8.DecodeLastRuneInString(text[:start])
			after, _ := utf8.DecodeRuneInString(text[end:])
			if start > 0 && aligned.Word.Has(before) || end < len(text) && aligned.Word.Has(after) {
				continue
			}
		}
		if t.LStrip {
			start = max(last, len(trimRight(text[:start])))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		found = append(found, match{start, end, t.ID})
		last = end
	}
	return found
}

// next returns the first token that starts at or after byte from. If there is none, start and end are
// len(text).
func (f *finder) next(text string, from int) (t addedToken, start, end int) {
	for i := from; i < len(text); i++ {
		if !f.first[text[i]] {
			continue
		}
		for n := min(f.max, len(text)-i); n > 0; n-- {
			if t, ok := f.tokens[text[i:i+n]]; ok {
				return t, i, i + n
			}
		}
	}
	return t, len(text), len(text)
}
