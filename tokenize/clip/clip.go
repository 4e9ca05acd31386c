// Package clip is the tokenizer of CLIP's text towers: byte-level BPE whose pieces at a word's end carry
// the suffix "</w>". Its texts are composed (NFC), in lower case, with single blanks.
package clip

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/hf"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// wordEnd is the suffix of a piece that ends a word.
const wordEnd = "</w>"

// Tokenizer is read-only and safe for concurrent use.
type Tokenizer struct {
	*hf.Tokenizer // Pad is EOT unless the files name another token
	// SOT and EOT stand around a text.
	SOT, EOT int32
}

var _ tokenize.Tokenizer = (*Tokenizer)(nil)

// Load reads a tokenizer from the files of a model's folder: tokenizer.json or, without it,
// vocab.json and merges.txt. Vocabularies of any size will do.
//
// Errors are those of hf.Load, and *tokenize.Error for the tokenizer of another model.
func Load(fsys fs.FS) (*Tokenizer, error) {
	t, err := hf.Load(fsys)
	if err != nil {
		return nil, err
	}
	c := &Tokenizer{Tokenizer: t}
	if t.Suffix() != wordEnd {
		return nil, files.Unsupported("a tokenizer of another model than CLIP: pieces do not end with %q", wordEnd)
	}
	begin, end := t.Begin, t.End
	if len(begin) == 0 && len(end) == 0 {
		for _, name := range []string{"<|startoftext|>", "<|endoftext|>"} {
			id, ok := t.ID(name)
			if !ok {
				return nil, &tokenize.Error{File: files.TokenizerJSON, Err: fmt.Errorf("vocabulary has no %s", name)}
			}
			begin, end = end, []int32{id}
		}
	}
	if len(begin) != 1 || len(end) != 1 || begin[0] == end[0] {
		return nil, files.Unsupported("post_processor other than one token, the text, another token")
	}
	c.SOT, c.EOT = begin[0], end[0]
	if c.Pad < 0 {
		c.Pad = c.EOT
	}
	return c, nil
}

// Decode implements tokenize.Tokenizer: bytes that are not UTF-8 become U+FFFD, a word's end becomes a
// blank, and blanks at either end go.
func (c *Tokenizer) Decode(ids []int32) string {
	text := strings.ReplaceAll(c.Tokenizer.Decode(ids), wordEnd, " ")
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F // Python calls the separators white space too
	})
}

// Text is what id reads as on its own, without the suffix that ends a word. Bytes that are not UTF-8
// are U+FFFD. It is "" when id is out of range.
func (c *Tokenizer) Text(id int32) string { return aligned.Lossy(c.bytes(id)) }

// bytes is what id stands for, without the suffix.
func (c *Tokenizer) bytes(id int32) []byte {
	return aligned.AppendBytes(nil, strings.TrimSuffix(c.Piece(id), wordEnd))
}

// EndsWord reports whether id ends a word, so that what follows it begins another.
func (c *Tokenizer) EndsWord(id int32) bool {
	return !c.IsSpecial(id) && strings.HasSuffix(c.Piece(id), wordEnd)
}

// IsFragment reports whether id stands for bytes that are not UTF-8: a part of a character.
func (c *Tokenizer) IsFragment(id int32) bool { return !utf8.Valid(c.bytes(id)) }

// IsPrintable reports whether id reads as visible characters: it is neither special nor a fragment, and
// has no control characters, white space, U+FFFD or code points without a character.
func (c *Tokenizer) IsPrintable(id int32) bool {
	data := c.bytes(id)
	if len(data) == 0 || c.IsSpecial(id) || !utf8.Valid(data) {
		return false
	}
	visible := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != utf8.RuneError }
	return strings.IndexFunc(string(data), func(r rune) bool { return !visible(r) }) < 0
}
