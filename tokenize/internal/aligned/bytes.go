package aligned

import (
	"strings"
	"unicode/utf8"
)

// ByteToRune and RuneToByte are the alphabet of byte-level BPE, in which every byte is a printable
// character: those that Latin-1 prints stand for themselves, the others follow from U+0100 on.
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

// AppendBytes appends what piece stands for. One with a character that is not of the alphabet, as an
// added token may have, stands for itself.
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

// Lossy replaces what is not UTF-8 as the reference does: one U+FFFD for each longest beginning of a
// character that breaks off, and for each byte that begins none.
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

// brokenPrefix is the length of the longest prefix of data that some character begins with, at
// least 1. Data does not begin with a whole character.
func brokenPrefix(data []byte) int {
	for n := min(3, len(data)); n > 1; n-- {
		whole := append(append(make([]byte, 0, 4), data[:n]...), "\x80\x80"[:4-n]...) // only the second byte has limits
		if _, size := utf8.DecodeRune(whole); size > n {
			return n
		}
	}
	return 1
}

// ToBytes replaces every character by those of its bytes, which have its offsets.
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
