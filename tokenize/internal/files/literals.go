package files

// Literals finds literal tokens in text.
type Literals struct {
	ids   map[string]int32
	first [256]bool // first bytes of the tokens
	max   int       // length of the longest token
}

// NewLiterals returns a finder of the given tokens, a map from content to id. No content may be empty.
func NewLiterals(ids map[string]int32) *Literals {
	l := &Literals{ids: ids}
	for token := range ids {
		l.first[token[0]] = true
		l.max = max(l.max, len(token))
	}
	return l
}

// Next returns the leftmost token that starts at or after byte from, the longest if several start
// there. If there is none, start and end are len(text).
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
