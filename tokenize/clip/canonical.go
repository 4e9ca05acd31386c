package clip

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// removed are string.punctuation of Python, without _, the quotation marks that ftfy makes " and ',
// and the vertical tab, which it removes.
const removed = "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~" + "\v\u02bc\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f"

// canonical is open_clip's canonicalize_text after its basic_clean: characters of full or half width
// become ordinary ones, _ becomes a space, ASCII punctuation and curly quotation marks are removed,
// capitals become small letters, and white space becomes single spaces, none at the end. One space
// stays at the beginning where chars begin with white space, so that a text can be encoded in parts.
//
// Not done: the rest of the package ftfy, which repairs text that was decoded wrongly, HTML entities, and
// Python's final form of sigma.
func canonical(chars []aligned.Char) []aligned.Char {
	pending := len(chars) > 0 && unicode.IsSpace(chars[0].R)
	for i, c := range chars {
		if p := width.LookupRune(c.R); p.Folded() != 0 {
			chars[i].R = p.Folded()
		}
	}
	chars = aligned.NFC(chars)
	out := make([]aligned.Char, 0, len(chars))
	for i, c := range chars {
		switch {
		case strings.ContainsRune(removed, c.R):
		case c.R == '_' || unicode.IsSpace(c.R):
			pending = pending || len(out) > 0
		case c.R < ' ' || c.R == 0x7F || c.R == 0xFEFF: // control characters, which ftfy removes
		default:
			if pending {
				before := chars[max(i-1, 0)]
				out, pending = append(out, aligned.Char{R: ' ', Start: before.Start, End: before.End}), false
			}
			out = append(out, c)
		}
	}
	return aligned.Lower(out)
}
