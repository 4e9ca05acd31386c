package clip

import (
	"unicode"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// contractions are the endings that stand as words of their own.
var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// class of a character for the word pattern.
type class uint8

const (
	other class = iota
	blank
	letter
	number
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z':
		return letter
	case r == ' ':
		return blank
	case unicode.Is(aligned.Letter, r):
		return letter
	case unicode.Is(aligned.Number, r):
		return number
	case unicode.Is(aligned.Blank, r):
		return blank
	}
	return other
}

// split is step 3: it calls word for each word of chars, in order. Heads are literals that the
// pattern tries before anything else; what they match is split again without them, because the
// reference applies two patterns, and only the first has them.
func split(chars []aligned.Char, heads []string, word func([]aligned.Char)) {
	for i := 0; i < len(chars); {
		if n := prefixOf(chars[i:], heads); n > 0 {
			split(chars[i:i+n], nil, word)
			i += n
			continue
		}
		if n := prefixOf(chars[i:], contractions); n > 0 {
			word(chars[i : i+n])
			i += n
			continue
		}
		kind, n := classOf(chars[i].R), 1
		if kind != number {
			for i+n < len(chars) && classOf(chars[i+n].R) == kind {
				n++
			}
		}
		if kind != blank {
			word(chars[i : i+n])
		}
		i += n
	}
}

// prefixOf is the number of characters of the first literal that chars begins with, or 0.
func prefixOf(chars []aligned.Char, list []string) int {
next:
	for _, l := range list {
		n := 0
		for _, r := range l {
			if n == len(chars) || chars[n].R != r {
				continue next
			}
			n++
		}
		return n
	}
	return 0
}
