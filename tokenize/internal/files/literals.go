package files

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
