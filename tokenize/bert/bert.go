// Package bert is the WordPiece tokenizer of BERT and its relatives.
//
// The steps, in the order of Hugging Face's library:
//
//  1. Special tokens that the text spells out ("[MASK]") are cut out of the raw text.
//  2. clean_text: control characters are removed; every white space becomes a blank.
//  3. tokenize_chinese_chars: an ideograph gets a blank on either side.
//  4. strip_accents (where unset: as do_lower_case): canonical decomposition; nonspacing marks are removed.
//  5. do_lower_case: character by character.
//  6. Words are split at white space, which is removed, and at punctuation, which is a word itself.
//  7. WordPiece: the longest piece that fits, from the left. A word that cannot be split is [UNK].
//
// Step 7 is the WordPiece model of github.com/sugarme/tokenizer.
package bert

import (
	"io/fs"
	"strings"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Tokenizer is a BERT tokenizer. It is read-only and safe for concurrent use.
type Tokenizer struct {
	// CLS, SEP, Mask, Unk and Pad are the ids of the special tokens.
	CLS, SEP, Mask, Unk, Pad int32
	// MaxLen is the largest number of tokens the model takes, [CLS] and [SEP] included; 0 when the
	// files do not say.
	MaxLen int

	normalizer normalizer
	literals   *files.Literals
	pieces     pieces
	list       []string         // id -> piece
	ids        map[string]int32 // piece -> id
	prefix     string           // of a piece that continues a word
	special    map[int32]bool
}

var _ tokenize.Tokenizer = (*Tokenizer)(nil)

// Load reads a tokenizer from the files of a model's folder.
//
// The vocabulary comes from tokenizer.json or, without it, vocab.txt. The settings do_lower_case,
// strip_accents and tokenize_chinese_chars are those of tokenizer_config.json where it has them,
// else those of tokenizer.json, else BERT's: true, unset, true. MaxLen is the smaller of
// model_max_length there and max_position_embeddings in config.json.
//
// Errors are *tokenize.FormatError, *tokenize.UnsupportedError, or an error of fsys; it matches
// fs.ErrNotExist when the folder has no vocabulary.
func Load(fsys fs.FS) (*Tokenizer, error) {
	f, err := readFiles(fsys)
	if err != nil {
		return nil, err
	}
	b := &Tokenizer{
		MaxLen:     f.maxLen,
		normalizer: f.normalizer,
		list:       f.vocab.List(),
		ids:        f.vocab.All(),
		prefix:     f.vocab.Prefix,
		special:    map[int32]bool{},
	}
	literal := map[string]int32{}
	for _, t := range f.vocab.Added {
		literal[t.Content] = t.ID
		b.special[t.ID] = b.special[t.ID] || t.Special
	}
	for _, s := range []struct {
		id   *int32
		name string
	}{{&b.CLS, f.names.CLS}, {&b.SEP, f.names.SEP}, {&b.Mask, f.names.Mask}, {&b.Unk, f.vocab.Unk}, {&b.Pad, f.names.Pad}} {
		id, ok := b.ids[s.name]
		if !ok {
			return nil, f.vocab.Lacks(s.name)
		}
		*s.id, b.special[id], literal[s.name] = id, true, id
	}
	if _, ok := f.vocab.IDs[f.vocab.Unk]; !ok {
		return nil, f.vocab.Lacks(f.vocab.Unk) // an added token is no help to WordPiece
	}
	b.literals, b.pieces = files.NewLiterals(literal), newPieces(&f.vocab)
	return b, nil
}

// Size is the number of ids.
func (b *Tokenizer) Size() int { return len(b.list) }

// Piece is the vocabulary entry of id, "" when id is out of range.
func (b *Tokenizer) Piece(id int32) string {
	if id < 0 || int(id) >= len(b.list) {
		return ""
	}
	return b.list[id]
}

// ID is the id of a vocabulary entry.
func (b *Tokenizer) ID(piece string) (int32, bool) {
	id, ok := b.ids[piece]
	return id, ok
}

// IsContinuation reports whether id is a piece "##x" that continues a word.
func (b *Tokenizer) IsContinuation(id int32) bool {
	return strings.HasPrefix(b.Piece(id), b.prefix)
}

// IsSpecial reports whether id is a special token such as [PAD] or [MASK].
func (b *Tokenizer) IsSpecial(id int32) bool { return b.special[id] }

// IsUnused reports whether id is a spare entry, [unused0] and so on.
func (b *Tokenizer) IsUnused(id int32) bool { return isUnused(b.Piece(id)) }

// Encode implements Tokenizer.
func (b *Tokenizer) Encode(text string) ([]tokenize.Token, error) {
	if err := aligned.CheckUTF8(text); err != nil {
		return nil, err
	}
	out := make([]tokenize.Token, 0, len(text)/4+1)
	for pos := 0; pos < len(text); {
		start, end, id := b.literals.Next(text, pos)
		var err error
		if out, err = b.encodePlain(out, text[pos:start], pos); err != nil {
			return nil, err
		}
		if start < end {
			out = append(out, tokenize.Token{ID: id, Start: start, End: end, Special: b.special[id]})
		}
		pos = end
	}
	return out, nil
}

// encodePlain appends the tokens of a text without literal tokens, whose offsets start at base.
func (b *Tokenizer) encodePlain(out []tokenize.Token, text string, base int) ([]tokenize.Token, error) {
	var word strings.Builder
	err := splitWords(b.normalizer.normalize(text, base), func(chars []aligned.Char) error {
		word.Reset()
		for _, c := range chars {
			word.WriteRune(c.R)
		}
		found, err := b.pieces.split(word.String())
		for _, p := range found {
			out = append(out, tokenize.Token{ID: p.id, Start: chars[p.start].Start, End: chars[p.end-1].End})
		}
		return err
	})
	return out, err
}

// Decode implements Tokenizer. A continuation piece that comes first keeps its "##".
func (b *Tokenizer) Decode(ids []int32) string {
	var out strings.Builder
	first := true
	for _, id := range ids {
		p := b.Piece(id)
		if p == "" || b.special[id] {
			continue
		}
		if rest, ok := strings.CutPrefix(p, b.prefix); ok && !first {
			out.WriteString(rest)
		} else {
			if !first {
				out.WriteByte(' ')
			}
			out.WriteString(p)
		}
		first = false
	}
	return out.String()
}

// isUnused reports whether piece is one of BERT's spare entries, [unused0], [unused1] and so on.
func isUnused(piece string) bool {
	digits, ok := strings.CutPrefix(piece, "[unused")
	if !ok {
		return false
	}
	digits, ok = strings.CutSuffix(digits, "]")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
