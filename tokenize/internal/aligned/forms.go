package aligned

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NFD returns the canonical decomposition of chars.
func NFD(chars []Char) []Char { return Transform(chars, decomposed(chars, canonical)) }

// NFC returns the canonical composition of chars.
func NFC(chars []Char) []Char { return Transform(chars, recompose(decomposed(chars, canonical))) }

// NFKD returns the compatibility decomposition of chars.
func NFKD(chars []Char) []Char { return Transform(chars, decomposed(chars, compatible)) }

// NFKC returns the compatibility composition of chars.
func NFKC(chars []Char) []Char { return Transform(chars, recompose(decomposed(chars, compatible))) }

func canonical(r rune) string {
	if r < 0xC0 || unicode.Is(lateForms, r) {
		return ""
	}
	return norm.NFD.String(string(r))
}

func compatible(r rune) string {
	if r < 0xA0 || unicode.Is(lateForms, r) {
		return ""
	}
	return norm.NFKD.String(string(r))
}

// decomposed replaces every character by split of it ("" leaves it unchanged) and sorts marks into
// canonical order.
func decomposed(chars []Char, split func(rune) string) []Change {
	parts := make([]Change, 0, len(chars)+8)
	for _, c := range chars {
		made := split(c.R)
		if made == "" {
			parts = append(parts, Change{R: c.R, class: class(c.R)})
			continue
		}
		added := 0
		for _, r := range made {
			parts = append(parts, Change{r, added, class(r)})
			added = 1
		}
	}
	for i := 0; i < len(parts); i++ {
		j := i
		for j < len(parts) && parts[j].class != 0 {
			j++
		}
		slices.SortStableFunc(parts[i:j], func(a, b Change) int { return int(a.class) - int(b.class) })
		i = j
	}
	return parts
}

// recompose joins each part to the preceding starter if a composed character exists and no part between
// them has the same or a higher class. It reuses parts.
func recompose(parts []Change) []Change {
	out := parts[:0]
	starter := -1 // index in out
	for _, p := range parts {
		if starter >= 0 {
			blocked := starter < len(out)-1 && out[len(out)-1].class >= p.class
			if r, ok := pairRune(out[starter].R, p.R); ok && !blocked {
				out[starter].R = r
				out[starter].Added += p.Added - 1
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

// pairRune returns the composition of a and b.
func pairRune(a, b rune) (rune, bool) {
	if b < 0x300 { // no composition ends in one of these
		return 0, false
	}
	var in, out [4 * utf8.UTFMax]byte
	pair := norm.NFC.Append(out[:0], utf8.AppendRune(utf8.AppendRune(in[:0], a), b)...)
	r, n := utf8.DecodeRune(pair)
	return r, n == len(pair) && !unicode.Is(lateForms, r)
}

// class returns the canonical combining class of r, 0 for a starter.
func class(r rune) uint8 {
	if unicode.Is(lateMarks, r) {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).CCC()
}
