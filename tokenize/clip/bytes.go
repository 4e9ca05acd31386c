package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// byteToRune and runeToByte are the alphabet of byte-level BPE, in which every byte is a printable
// character: those that Latin-1 prints stand for themselves, the others follow from U+0100 on.
var byteToRune, runeToByte = byteAlphabet()

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

// appendBytes appends what piece stands for. One with a character that is not of the alphabet, as an
// added token may have, stands for itself.
func appendBytes(out []byte, piece string) []byte {
	n := len(out)
	for _, r := range piece {
		b, ok := runeToByte[r]
		if !ok {
			return append(out[:n], piece...)
		}
		out = append(out, b)
	}
	return out
}

// lossy replaces what is not UTF-8 as the reference does: one U+FFFD for each longest beginning of a
// character that breaks off, and for each byte that begins none.
func lossy(data []byte) string {
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

// Decode implements Tokenizer: the bytes of all pieces are joined, bytes that are not UTF-8 become
// U+FFFD, "</w>" becomes a blank, and blanks at either end go.
func (c *Tokenizer) Decode(ids []int32) string {
	data := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		if !c.special[id] {
			data = appendBytes(data, c.Piece(id))
		}
	}
	text := strings.ReplaceAll(lossy(data), wordEnd, " ")
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F // Python calls the separators white space too
	})
}

// Text is what id reads as on its own, without the suffix that ends a word; bytes that are not UTF-8
// are U+FFFD. It is "" when id is out of range.
func (c *Tokenizer) Text(id int32) string { return lossy(c.bytes(id)) }

// bytes is what id stands for, without the suffix.
func (c *Tokenizer) bytes(id int32) []byte {
	return appendBytes(nil, strings.TrimSuffix(c.Piece(id), wordEnd))
}

// EndsWord reports whether id ends a word, so that what follows it begins another.
func (c *Tokenizer) EndsWord(id int32) bool {
	return !c.special[id] && strings.HasSuffix(c.Piece(id), wordEnd)
}

// IsFragment reports whether id stands for bytes that are not UTF-8: a part of a character.
func (c *Tokenizer) IsFragment(id int32) bool { return !utf8.Valid(c.bytes(id)) }

// IsPrintable reports whether id reads as characters that a reader sees: it is neither special nor a
// fragment, nor has it control characters, white space, U+FFFD or code points without a character.
func (c *Tokenizer) IsPrintable(id int32) bool {
	data := c.bytes(id)
	if len(data) == 0 || c.special[id] || !utf8.Valid(data) {
		return false
	}
	for _, r := range string(data) {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}
