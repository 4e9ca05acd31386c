package aligned

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lateDecomposition is the character that Go's tables Decompose and the reference, which follows an
// older Unicode version there, does not.
const lateDecomposition = 0x11938

// Decompose is the canonical decomposition (NFD).
func Decompose(chars []Char) []Char { return align(decomposed(chars), chars) }

// Compose is the canonical composition (NFC).
func Compose(chars []Char) []Char { return align(recompose(decomposed(chars)), chars) }

// part is a character of a normal form in the making.
type part struct {
	r     rune
	class uint8
	added int // characters that it is more than the original has: 1 for an addition, -n for one that took in n
}

// decomposed are the parts of every character, its marks in canonical order.
func decomposed(chars []Char) []part {
	parts := make([]part, 0, len(chars)+8)
	for _, c := range chars {
		if c.R < 0xC0 || c.R == lateDecomposition {
			parts = append(parts, part{r: c.R})
			continue
		}
		added := 0
		for _, r := range norm.NFD.String(string(c.R)) {
			parts = append(parts, part{r, class(r), added})
			added = 1
		}
	}
	for i := 0; i < len(parts); i++ {
		j := i
		for j < len(parts) && parts[j].class != 0 {
			j++
		}
		slices.SortStableFunc(parts[i:j], func(a, b part) int { return int(a.class) - int(b.class) })
		i = j
	}
	return parts
}

// recompose joins each part to the last starter before it where a character for both exists, unless
// a part that stays between them has the same class or a higher one. It reuses parts.
func recompose(parts []part) []part {
	out := parts[:0]
	starter := -1 // index in out
	for _, p := range parts {
		if starter >= 0 {
			blocked := starter < len(out)-1 && out[len(out)-1].class >= p.class
			if r, ok := pairRune(out[starter].r, p.r); ok && !blocked {
				out[starter].r = r
				out[starter].added += p.added - 1
				continue
			}
		}
		out = append(out, p)
		if p.class == 0 {
			starter = len(out) - 1
		}
	}
	return out
}

// align gives parts their offsets. They stay in order although marks swap places: as in the reference,
// originals are used up in the order of the result. A part that took in n others has the offsets of
// the next original and passes over n more; an addition has those of the original before it.
func align(parts []part, chars []Char) []Char {
	out := make([]Char, len(parts))
	next := 0
	for i, p := range parts {
		at := next
		if p.added > 0 {
			at = max(next-1, 0)
		}
		out[i] = Char{p.r, chars[at].Start, chars[at].End}
		next += 1 - p.added
	}
	return out
}

// pairRune is the character that a and b Compose to.
func pairRune(a, b rune) (rune, bool) {
	if b < 0x300 { // no composition ends in one of these
		return 0, false
	}
	var in, out [4 * utf8.UTFMax]byte
	pair := norm.NFC.Append(out[:0], utf8.AppendRune(utf8.AppendRune(in[:0], a), b)...)
	r, n := utf8.DecodeRune(pair)
	return r, n == len(pair) && r != lateDecomposition
}

// class is the canonical combining class, 0 for a character that starts a new sequence.
func class(r rune) uint8 {
	if !unicode.Is(Combining, r) {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).CCC()
}
