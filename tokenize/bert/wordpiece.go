package bert

import (
	"fmt"

	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"

	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// pieces splits words by the WordPiece model of github.com/sugarme/tokenizer. Only the model is
// used: the normalizer and the offsets of that library differ from the reference.
type pieces struct {
	model wordpiece.WordPiece
}

// piece is a part of a word: the vocabulary id and the characters [start, end) of the word.
type piece struct {
	id         int32
	start, end int
}

func newPieces(v *files.Vocabulary) pieces {
	ids := make(model.Vocab, len(v.IDs))
	for p, id := range v.IDs {
		ids[p] = int(id)
	}
	return pieces{wordpiece.NewWordPieceBuilder().Vocab(&ids).UnkToken(v.Unk).
		ContinuingSubwordPrefix(v.Prefix).MaxInputCharsPerWord(v.MaxChars).Build()}
}

// split returns the pieces of one word; one that covers the word where it is unknown.
// The library panics on some input in other places, so a panic becomes an error.
func (p pieces) split(word string) (out []piece, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("tokenize: splitting %q: panic: %v", word, r)
		}
	}()
	tokens, err := p.model.Tokenize(word)
	if err != nil {
		return nil, fmt.Errorf("tokenize: splitting %q: %w", word, err)
	}
	for _, t := range tokens {
		out = append(out, piece{int32(t.Id), t.Offsets[0], t.Offsets[1]})
	}
	return out, nil
}
