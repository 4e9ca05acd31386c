package aligned

import (
	"strings"
	"unicode/utf8"
)

// ByteToRune and RuneToByte are the alphabet of byte-level BPE, which maps every byte to a printable
// character: printable Latin-1 characters to themselves, other bytes to U+0100 onwards.
var ByteToRune, RuneToByte = byteAlphabet()

func byteAlphabet() (to [256]rune, from map[rune]byte) {
	from = make(map[rune]byte, 256)
	next := rune(0x100)
	for i := range 256 {
		r := rune(i)
		if r < '!' || r > '~' && r < '¡' || r == 0xAD {
			r = next
			next++
		}
		to[i], from[r] = r, byte(i)
	}
	return to, from
}

// AppendBytes appends the bytes of piece. A piece with a character outside the alphabet, such as an
// added token, is appended unchanged.
func AppendBytes(out []byte, piece string) []byte {
	n := len(out)
	for _, r := range piece {
		b, ok := RuneToByte[r]
		if !ok {
			return append(out[:n], piece...)
		}
		out = append(out, b)
	}
	return out
}

// Lossy replaces invalid UTF-8 as the reference does: one U+FFFD for each maximal truncated sequence,
// and one for each byte that starts no character.
func Lossy(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var out strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			n = brokenPrefix(data)
		}
		out.WriteRune(r)
		data = data[n:]
	}
	return out.String()
}

// brokenPrefix returns the length of the longest prefix of data that starts some character, at least 1.
// Data must not start with a complete character.
func brokenPrefix(data []byte) int {
	for n := min(3, len(data)); n > 1; n-- {
		whole := append(append(make([]byte, 0, 4), data[:n]...), "\x80\x80"[:4-n]...) // only the second byte has a restricted range
		if _, size := utf8.DecodeRune(whole); size > n {
			return n
		}
	}
	return 1
}

// ToBytes replaces every character by the characters of its bytes, with the same offsets.
func ToBytes(chars []Char) []Char {
	out := make([]Char, 0, len(chars))
	var buf [utf8.UTFMax]byte
	for _, c := range chars {
		for _, b := range buf[:utf8.EncodeRune(buf[:], c.R)] {
			out = append(out, Char{ByteToRune[b], c.Start, c.End})
		}
	}
	return out
}
