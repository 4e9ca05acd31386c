package model

import (
	"fmt"

	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// wordPiece repeatedly takes the longest matching piece from the left. It uses the model of
// github.com/sugarme/tokenizer, but not that library's normalizer and offsets, which differ from the
// reference.
type wordPiece struct {
	model wordpiece.WordPiece
}

// NewWordPiece returns the model with the ids, unknown token, prefix and length limit of v.
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

// Split returns one unknown piece for a word that cannot be split. The library panics on some inputs,
// so a panic is returned as an error.
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
