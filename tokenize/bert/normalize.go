package bert

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// normalizer is BERT's text normalisation, steps 2 to 5 of the package comment.
type normalizer struct {
	clean, splitIdeographs, stripAccents, lowercase bool
}

// normalize returns the characters of text, whose offsets are counted from base.
func (n normalizer) normalize(text string, base int) []aligned.Char {
	chars, ascii := n.cleaned(text, base)
	if n.stripAccents && !ascii {
		chars = slices.DeleteFunc(aligned.NFD(chars), func(c aligned.Char) bool { return unicode.Is(aligned.Accent, c.R) })
	}
	if n.lowercase {
		chars = aligned.Lower(chars)
	}
	return chars
}

// cleaned does steps 2 and 3 and says whether only ASCII is left, which needs no decomposition.
func (n normalizer) cleaned(text string, base int) (chars []aligned.Char, ascii bool) {
	chars, ascii = make([]aligned.Char, 0, len(text)), true
	for i, r := range text {
		c := aligned.Char{R: r, Start: base + i, End: base + i + utf8.RuneLen(r)}
		if n.clean {
			if unicode.Is(aligned.Dropped, r) {
				continue
			}
			if unicode.IsSpace(r) {
				c.R = ' '
			}
		}
		if c.R >= utf8.RuneSelf {
			ascii = false
			if n.splitIdeographs && unicode.Is(aligned.Ideograph, r) {
				blank := aligned.Char{R: ' ', Start: c.Start, End: c.End}
				chars = append(chars, blank, c, blank)
				continue
			}
		}
		chars = append(chars, c)
	}
	return chars, ascii
}
