package model

import (
	"fmt"

	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// wordPiece takes the longest piece that fits, from the left. It is the model of
// github.com/sugarme/tokenizer; the normalizer and the offsets of that library differ from the
// reference.
type wordPiece struct {
	model wordpiece.WordPiece
}

// NewWordPiece uses the ids, the unknown token, the prefix and the limit of v.
func NewWordPiece(v *files.Vocabulary) (Model, error) {
	if v.Prefix == "" {
		return nil, files.Unsupported("empty continuing_subword_prefix")
	}
	if _, ok := v.IDs[v.Unk]; !ok {
		return nil, v.Lacks(v.Unk)
	}
	ids := make(model.Vocab, len(v.IDs))
	for p, id := range v.IDs {
		ids[p] = int(id)
	}
	return wordPiece{wordpiece.NewWordPieceBuilder().Vocab(&ids).UnkToken(v.Unk).
		ContinuingSubwordPrefix(v.Prefix).MaxInputCharsPerWord(v.MaxChars).Build()}, nil
}

// Split gives one piece for a word that cannot be split. The library panics on some input in other
// places, so a panic becomes an error.
func (m wordPiece) Split(out []Piece, word []aligned.Char) (made []Piece, err error) {
	text := aligned.String(word)
	defer func() {
		if r := recover(); r != nil {
			made, err = nil, fmt.Errorf("tokenize: splitting %q: panic: %v", text, r)
		}
	}()
	tokens, err := m.model.Tokenize(text)
	if err != nil {
		return nil, fmt.Errorf("tokenize: splitting %q: %w", text, err)
	}
	for _, t := range tokens {
		out = append(out, Piece{int32(t.Id), t.Offsets[0], t.Offsets[1]})
	}
	return out, nil
}
