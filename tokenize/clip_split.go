package tokenize

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// contractions are the endings that stand as words of their own.
var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// class of a character for the word pattern.
type clipClass uint8

const (
	clipOther clipClass = iota
	clipBlank
	clipLetter
	clipNumber
)

func clipClassOf(r rune) clipClass {
	switch {
	case 'a' <= r && r <= 'z':
		return clipLetter
	case r == ' ':
		return clipBlank
	case unicode.Is(clipLetters, r):
		return clipLetter
	case unicode.Is(clipNumbers, r):
		return clipNumber
	case unicode.Is(clipBlanks, r):
		return clipBlank
	}
	return clipOther
}

// splitCLIP is step 3: it calls word for each word of chars, in order. Heads are literals that the
// pattern tries before anything else; what they match is split again without them, because the
// reference applies two patterns, and only the first has them.
func splitCLIP(chars []char, heads []string, word func([]char)) {
	for i := 0; i < len(chars); {
		if n := prefixOf(chars[i:], heads); n > 0 {
			splitCLIP(chars[i:i+n], nil, word)
			i += n
			continue
		}
		if n := prefixOf(chars[i:], contractions); n > 0 {
			word(chars[i : i+n])
			i += n
			continue
		}
		kind, n := clipClassOf(chars[i].r), 1
		if kind != clipNumber {
			for i+n < len(chars) && clipClassOf(chars[i+n].r) == kind {
				n++
			}
		}
		if kind != clipBlank {
			word(chars[i : i+n])
		}
		i += n
	}
}

// prefixOf is the number of characters of the first literal that chars begins with, or 0.
func prefixOf(chars []char, list []string) int {
next:
	for _, l := range list {
		n := 0
		for _, r := range l {
			if n == len(chars) || chars[n].r != r {
				continue next
			}
			n++
		}
		return n
	}
	return 0
}

// each calls found for every token that next finds in chars, from left to right: the characters
// [start, end) and the id.
func (l *literals) each(chars []char, found func(start, end int, id int32)) {
	if !l.mayOccur(chars) {
		return
	}
	var out strings.Builder
	at := make([]int, len(chars)) // byte at which a character begins
	for i, c := range chars {
		at[i] = out.Len()
		out.WriteRune(c.r)
	}
	text := out.String()
	for pos := 0; pos < len(text); {
		start, end, id := l.next(text, pos)
		if start < end {
			found(sort.SearchInts(at, start), sort.SearchInts(at, end), id)
		}
		pos = end
	}
}

// mayOccur reports whether some character begins as a literal does.
func (l *literals) mayOccur(chars []char) bool {
	var buf [utf8.UTFMax]byte
	for _, c := range chars {
		if utf8.EncodeRune(buf[:], c.r); l.first[buf[0]] {
			return true
		}
	}
	return false
}
