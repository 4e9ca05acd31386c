package tokenize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizeCLIP is step 2. Offsets are counted from base.
func normalizeCLIP(text string, base int) []char {
	chars := make([]char, 0, len(text))
	for i, r := range text {
		chars = append(chars, char{r, base + i, base + i + utf8.RuneLen(r)})
	}
	if !norm.NFC.IsNormalString(text) {
		chars = compose(chars)
	}
	return lower(joinBlanks(chars))
}

// normalizedText is the text that normalizeCLIP makes.
func normalizedText(text string) string {
	var out strings.Builder
	for _, c := range normalizeCLIP(text, 0) {
		out.WriteRune(c.r)
	}
	return out.String()
}

// joinBlanks makes one blank of every run of white space.
func joinBlanks(chars []char) []char {
	out := chars[:0]
	for _, c := range chars {
		if !unicode.Is(clipBlanks, c.r) {
			out = append(out, c)
			continue
		}
		if n := len(out); n > 0 && out[n-1].r == ' ' {
			out[n-1].end = c.end
			continue
		}
		out = append(out, char{' ', c.start, c.end})
	}
	return out
}
