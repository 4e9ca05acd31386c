// Package model implements the models of tokenizer.json, which split a word into pieces of a
// vocabulary: WordPiece, BPE, Unigram and WordLevel.
package model

import (
	"encoding/json"
	"errors"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Piece is a vocabulary id and the characters [Start, End) of the word that it covers.
type Piece struct {
	ID         int32
	Start, End int
}

// Model splits words. Implementations are safe for concurrent use.
type Model interface {
	// Split appends the pieces of word to out and returns the result. Word must not be empty.
	Split(out []Piece, word []aligned.Char) ([]Piece, error)
}

// Spec is the value of "model" in tokenizer.json.
type Spec struct {
	files.Typed
	Unk          string          `json:"unk_token"`
	UnkID        *int32          `json:"unk_id"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       string          `json:"end_of_word_suffix"`
	MaxChars     *int            `json:"max_input_chars_per_word"`
	Dropout      *float64        `json:"dropout"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`

	IDs   files.PieceIDs `json:"-"` // used instead of Vocab if set
	Rules []MergeRule    `json:"-"` // used instead of Merges if set
}

// kind returns the model's type. Older files omit it; then it is inferred from the fields.
func (s *Spec) kind() string {
	switch {
	case s.Type != "":
		return s.Type
	case s.Merges != nil:
		return "BPE"
	case s.MaxChars != nil:
		return "WordPiece"
	case len(s.Vocab) > 0 && s.Vocab[0] == '[':
		return "Unigram"
	}
	return "WordLevel"
}

// Read returns the model described by s, and its vocabulary. Errors do not name the file.
func Read(s Spec) (Model, files.Vocabulary, error) {
	v := files.Vocabulary{File: files.TokenizerJSON, Unk: s.Unk, Prefix: "##", MaxChars: 100}
	switch {
	case s.IDs != nil:
		v.IDs = s.IDs
	case s.Vocab == nil:
		return nil, v, errors.New("no model.vocab")
	case s.kind() == "Unigram":
		m, err := newUnigram(s, &v)
		return m, v, err
	default:
		if err := json.Unmarshal(s.Vocab, &v.IDs); err != nil {
			return nil, v, err
		}
	}
	switch s.kind() {
	case "WordPiece":
		if s.Prefix != nil {
			v.Prefix = *s.Prefix
		}
		if s.MaxChars != nil {
			v.MaxChars = *s.MaxChars
		}
		m, err := NewWordPiece(&v)
		return m, v, err
	case "BPE":
		if s.Rules == nil {
			if err := json.Unmarshal(s.Merges, &s.Rules); err != nil {
				return nil, v, err
			}
		}
		m, err := NewBPE(s, &v, s.Rules)
		return m, v, err
	case "WordLevel":
		if _, ok := v.IDs[v.Unk]; !ok {
			return nil, v, v.Lacks(v.Unk)
		}
		return wordLevel{v.IDs, v.IDs[v.Unk]}, v, nil
	}
	return nil, v, tokenize.Unsupported(files.TokenizerJSON, "model "+s.kind())
}

// wordLevel has whole words only.
type wordLevel struct {
	ids files.PieceIDs
	unk int32
}

func (m wordLevel) Split(out []Piece, word []aligned.Char) ([]Piece, error) {
	id, ok := m.ids[aligned.String(word)]
	if !ok {
		id = m.unk
	}
	return append(out, Piece{id, 0, len(word)}), nil
}
