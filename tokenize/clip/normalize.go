package clip

import (
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// normalize is step 2. Offsets are counted from base.
func normalize(text string, base int) []aligned.Char {
	chars := aligned.Of(text, base)
	if !norm.NFC.IsNormalString(text) {
		chars = aligned.NFC(chars)
	}
	return aligned.Lower(joinBlanks(chars))
}

// normalizedText is the text that normalize makes.
func normalizedText(text string) string {
	return aligned.String(normalize(text, 0))
}

// joinBlanks makes one blank of every run of white space.
func joinBlanks(chars []aligned.Char) []aligned.Char {
	out := chars[:0]
	for _, c := range chars {
		if !unicode.Is(aligned.Blank, c.R) {
			out = append(out, c)
			continue
		}
		if n := len(out); n > 0 && out[n-1].R == ' ' {
			out[n-1].End = c.End
			continue
		}
		out = append(out, aligned.Char{R: ' ', Start: c.Start, End: c.End})
	}
	return out
}
