// Package clip is the byte-level BPE of CLIP's text towers, whose pieces at a word's end carry the
// suffix "</w>".
//
// The steps, in the reference's order:
//
//  1. Added tokens ("<|endoftext|>") are cut out of the raw text, or after step 2 where the files
//     call them normalized.
//  2. Canonical composition (NFC), one blank for every run of white space, lower case by character.
//  3. Words: a contraction's ending ('s 't 're 've 'm 'll 'd), a run of letters, one digit, or a run
//     of anything else; white space goes.
//  4. The bytes of each word, the last with the suffix, are merged pair by pair: always the pair that
//     comes first in the list of merges, the leftmost of equals.
//
// Offsets are those of the characters a token has bytes of, so the tokens of one emoji all cover it;
// a composed character has the offsets of the first character it was composed from.
package clip

import (
	"io/fs"
	"sync"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Tokenizer is a CLIP tokenizer. It is read-only and safe for concurrent use.
type Tokenizer struct {
	// SOT and EOT stand around a text. Pad fills a batch and Unk stands for a byte without a piece;
	// both are EOT unless the files say otherwise. Unk is -1 where every byte has its pieces and the
	// files name none.
	SOT, EOT, Pad, Unk int32
	// MaxLen is the largest number of tokens the model takes, SOT and EOT included; 0 when the
	// files do not say.
	MaxLen int

	raw, late *files.Literals // added tokens of the raw and of the normalised text
	heads     []string        // that the word pattern tries first
	bpe       bpe
	list      []string         // id -> piece
	ids       map[string]int32 // piece -> id
	special   map[int32]bool
	buffers   sync.Pool // of *bpeBuffer
}

var _ tokenize.Tokenizer = (*Tokenizer)(nil)

// Load reads a tokenizer from the files of a model's folder: tokenizer.json or, without it,
// vocab.json and merges.txt.
//
// The names of SOT and EOT are those of the post-processor in tokenizer.json, else bos_token and
// eos_token in tokenizer_config.json or special_tokens_map.json, else <|startoftext|> and
// <|endoftext|>; their ids are looked up, so any vocabulary size will do. MaxLen is the smallest of
// model_max_length in tokenizer_config.json and max_position_embeddings in config.json, at its top or
// in its text_config.
//
// Errors are *tokenize.FormatError, *tokenize.UnsupportedError, or an error of fsys; it matches
// fs.ErrNotExist when the folder has no vocabulary.
func Load(fsys fs.FS) (*Tokenizer, error) {
	f, err := readFolder(fsys)
	if err != nil {
		return nil, err
	}
	c := &Tokenizer{
		MaxLen:  f.maxLen,
		Unk:     -1,
		heads:   f.heads,
		list:    f.vocab.List(),
		ids:     f.vocab.All(),
		special: map[int32]bool{},
	}
	c.buffers.New = func() any { return new(bpeBuffer) }
	raw, late := map[string]int32{}, map[string]int32{}
	for _, t := range f.vocab.Added {
		if t.Normalized {
			late[normalizedText(t.Content)] = t.ID
		} else {
			raw[t.Content] = t.ID
		}
		c.special[t.ID] = c.special[t.ID] || t.Special
	}
	c.raw, c.late = files.NewLiterals(raw), files.NewLiterals(late)
	c.SOT, c.EOT, c.Pad = c.ids[f.sot], c.ids[f.eot], c.ids[f.pad] // the files were checked to have them
	if f.vocab.Unk != "" {
		c.Unk = c.ids[f.vocab.Unk]
	}
	c.bpe, err = newBPE(&f.vocab, f.merges, f.mergesFrom, c.Unk)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Size is the number of ids.
func (c *Tokenizer) Size() int { return len(c.list) }

// Piece is the vocabulary entry of id as the files spell it, in the byte alphabet and with the
// suffix, "" when id is out of range. Text is what it reads as.
func (c *Tokenizer) Piece(id int32) string {
	if id < 0 || int(id) >= len(c.list) {
		return ""
	}
	return c.list[id]
}

// ID is the id of a vocabulary entry.
func (c *Tokenizer) ID(piece string) (int32, bool) {
	id, ok := c.ids[piece]
	return id, ok
}

// IsSpecial reports whether id is a special token such as <|endoftext|>, which Decode leaves out.
func (c *Tokenizer) IsSpecial(id int32) bool { return c.special[id] }

// Encode implements Tokenizer. A byte without a piece becomes Unk, which is not marked Special.
func (c *Tokenizer) Encode(text string) ([]tokenize.Token, error) {
	if err := aligned.CheckUTF8(text); err != nil {
		return nil, err
	}
	buf := c.buffers.Get().(*bpeBuffer)
	defer c.buffers.Put(buf)
	out := make([]tokenize.Token, 0, len(text)/3+1)
	for pos := 0; pos < len(text); {
		start, end, id := c.raw.Next(text, pos)
		out = c.encodePlain(out, buf, text[pos:start], pos)
		if start < end {
			out = append(out, tokenize.Token{ID: id, Start: start, End: end, Special: c.special[id]})
		}
		pos = end
	}
	return out, nil
}

// encodePlain appends the tokens of a text without raw literals, whose offsets start at base.
func (c *Tokenizer) encodePlain(out []tokenize.Token, buf *bpeBuffer, text string, base int) []tokenize.Token {
	chars := normalize(text, base)
	plain := func(from, to int) {
		split(chars[from:to], c.heads, func(word []aligned.Char) {
			out = c.encodeWord(out, buf, word)
		})
	}
	pos := 0
	c.late.Each(chars, func(start, end int, id int32) {
		plain(pos, start)
		out = append(out, tokenize.Token{ID: id, Start: chars[start].Start, End: chars[end-1].End, Special: c.special[id]})
		pos = end
	})
	plain(pos, len(chars))
	return out
}

// encodeWord appends the tokens of one word.
func (c *Tokenizer) encodeWord(out []tokenize.Token, buf *bpeBuffer, word []aligned.Char) []tokenize.Token {
	buf.setWord(word)
	for _, p := range c.bpe.split(buf) {
		out = append(out, tokenize.Token{ID: p.id, Start: word[buf.owner[p.start]].Start, End: word[buf.owner[p.end-1]].End})
	}
	return out
}
