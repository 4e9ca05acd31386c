package files

import (
	"sort"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// Literals finds added tokens in text.
type Literals struct {
	ids   map[string]int32
	first [256]bool // bytes that a token begins with
	max   int       // length of the longest token
}

// NewLiterals takes the ids of tokens by their content, which is not empty.
func NewLiterals(ids map[string]int32) *Literals {
	l := &Literals{ids: ids}
	for token := range ids {
		l.first[token[0]] = true
		l.max = max(l.max, len(token))
	}
	return l
}

// Next returns the leftmost token at or after byte from, the longest where several begin there.
// Without one, start and end are the end of the text.
func (l *Literals) Next(text string, from int) (start, end int, id int32) {
	for i := from; i < len(text); i++ {
		if !l.first[text[i]] {
			continue
		}
		for n := min(l.max, len(text)-i); n > 0; n-- {
			if id, ok := l.ids[text[i:i+n]]; ok {
				return i, i + n, id
			}
		}
	}
	return len(text), len(text), 0
}

// Each calls found for every token in list, from left to right, with its characters
// [start, end) and its id.
func (l *Literals) Each(list []aligned.Char, found func(start, end int, id int32)) {
	if !l.mayOccur(list) {
		return
	}
	at := make([]int, len(list)) // byte at which a character begins
	n := 0
	for i, c := range list {
		at[i] = n
		n += utf8.RuneLen(c.R)
	}
	text := aligned.String(list)
	for pos := 0; pos < len(text); {
		start, end, id := l.Next(text, pos)
		if start < end {
			found(sort.SearchInts(at, start), sort.SearchInts(at, end), id)
		}
		pos = end
	}
}

// mayOccur reports whether some character begins as a token does.
func (l *Literals) mayOccur(list []aligned.Char) bool {
	var buf [utf8.UTFMax]byte
	for _, c := range list {
		if utf8.EncodeRune(buf[:], c.R); l.first[buf[0]] {
			return true
		}
	}
	return false
}
