package tokenize

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// normalizer is BERT's text normalisation, steps 2 to 5 of the package comment.
type normalizer struct {
	clean, splitIdeographs, stripAccents, lowercase bool
}

// char is a character of normalised text with the bytes of the original it stands for.
type char struct {
	r          rune
	start, end int
}

// normalize returns the characters of text, whose offsets are counted from base.
func (n normalizer) normalize(text string, base int) []char {
	chars, ascii := n.cleaned(text, base)
	if n.stripAccents && !ascii {
		chars = slices.DeleteFunc(decompose(chars), func(c char) bool { return unicode.Is(accent, c.r) })
	}
	if n.lowercase {
		chars = lower(chars)
	}
	return chars
}

// cleaned does steps 2 and 3 and says whether only ASCII is left, which needs no decomposition.
func (n normalizer) cleaned(text string, base int) (chars []char, ascii bool) {
	chars, ascii = make([]char, 0, len(text)), true
	for i, r := range text {
		c := char{r, base + i, base + i + utf8.RuneLen(r)}
		if n.clean {
			if unicode.Is(dropped, r) {
				continue
			}
			if unicode.IsSpace(r) {
				c.r = ' '
			}
		}
		if c.r >= utf8.RuneSelf {
			ascii = false
			if n.splitIdeographs && unicode.Is(ideograph, r) {
				blank := char{' ', c.start, c.end}
				chars = append(chars, blank, c, blank)
				continue
			}
		}
		chars = append(chars, c)
	}
	return chars, ascii
}

// lower maps every character to lower case.
func lower(chars []char) []char {
	out := make([]char, 0, len(chars))
	for _, c := range chars {
		if c.r == 'İ' { // the one character whose lower case is two; both have its offsets
			out = append(out, char{'i', c.start, c.end}, char{'\u0307', c.start, c.end})
			continue
		}
		out = append(out, char{lowerRune(c.r), c.start, c.end})
	}
	return out
}

// lowerRune is unicode.ToLower with the pairs of Unicode 16, which the reference knows.
func lowerRune(r rune) rune {
	switch {
	case r == 0x1C89, r == 0xA7CC, r == 0xA7DA:
		return r + 1
	case r == 0xA7CB:
		return 0x0264
	case r == 0xA7DC:
		return 0x019B
	case r >= 0x10D50 && r <= 0x10D65:
		return r + 0x20
	}
	return unicode.ToLower(r)
}
