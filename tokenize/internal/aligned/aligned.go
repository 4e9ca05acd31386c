// Package aligned holds text as characters that know which bytes of the original they stand for,
// with the Unicode normal forms and character classes of Hugging Face's tokenizers.
//
// The tables come from that library, because Go follows another version of Unicode.
package aligned

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Char is a character of normalized text and the bytes [Start, End) of the original it stands for.
type Char struct {
	R          rune
	Start, End int
}

// Of returns the characters of text. Their offsets are counted from base.
func Of(text string, base int) []Char {
	out := make([]Char, 0, len(text))
	for i, r := range text {
		out = append(out, Char{r, base + i, base + i + utf8.RuneLen(r)})
	}
	return out
}

// String returns the text of chars.
func String(chars []Char) string {
	var out strings.Builder
	for _, c := range chars {
		out.WriteRune(c.R)
	}
	return out.String()
}

// Lower maps every character to lower case.
func Lower(chars []Char) []Char {
	out := make([]Char, 0, len(chars))
	for _, c := range chars {
		if c.R == 'İ' { // the only character whose lower case is two characters; both have its offsets
			out = append(out, Char{'i', c.Start, c.End}, Char{'\u0307', c.Start, c.End})
			continue
		}
		out = append(out, Char{lowerRune(c.R), c.Start, c.End})
	}
	return out
}

// lowerRune is unicode.ToLower with the pairs of Unicode 16, which the reference has.
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
