// Package files reads the files of a tokenizer: vocabularies, added tokens and settings.
package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
)

// Vocabulary is the table of pieces of a model.
type Vocabulary struct {
	File     string   // source file
	IDs      PieceIDs // without added tokens
	Added    []AddedToken
	Unk      string
	Prefix   string // of a continuation piece
	MaxChars int    // a longer word is unknown
}

// AddedToken is an entry of "added_tokens" in tokenizer.json. It is matched in the text before the
// model runs. Its id may lie outside the model's vocabulary.
type AddedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// All returns the ids of all pieces, added tokens included.
func (v *Vocabulary) All() map[string]int32 {
	all := maps.Clone(map[string]int32(v.IDs))
	for _, t := range v.Added {
		all[t.Content] = t.ID
	}
	return all
}

// List returns the pieces in the order of their ids. The vocabulary must pass Check.
func (v *Vocabulary) List() []string {
	all := v.All()
	list := make([]string, len(all))
	for p, id := range all {
		list[id] = p
	}
	return list
}

// Check returns an error if a piece has two ids, an id has two pieces, or an id has no piece.
func (v *Vocabulary) Check() error {
	bad := func(format string, args ...any) error {
		return &tokenize.Error{File: v.File, Err: fmt.Errorf(format, args...)}
	}
	all := maps.Clone(map[string]int32(v.IDs))
	for _, t := range v.Added {
		if t.Content == "" {
			return bad("added token without content")
		}
		if id, ok := all[t.Content]; ok && id != t.ID {
			return bad("%q is listed twice, as %d and %d", t.Content, id, t.ID)
		}
		all[t.Content] = t.ID
	}
	seen := make([]bool, len(all))
	for p, id := range all {
		if id < 0 || int(id) >= len(all) {
			return bad("%q has id %d in a vocabulary of %d", p, id, len(all))
		}
		if seen[id] {
			return bad("%q has the id %d of another piece", p, id)
		}
		seen[id] = true
	}
	return nil
}

// Lacks returns the error for a required token that the vocabulary lacks.
func (v *Vocabulary) Lacks(piece string) error {
	return &tokenize.Error{File: v.File, Err: fmt.Errorf("vocabulary has no %s", piece)}
}

// ParseVocabTxt parses vocab.txt: one piece a line, whose id is the line number from 0.
func ParseVocabTxt(data []byte) (Vocabulary, error) {
	v := Vocabulary{File: VocabTxt, IDs: PieceIDs{}, Prefix: "##", MaxChars: 100}
	text := strings.TrimSuffix(string(data), "\n")
	if text == "" {
		return v, &tokenize.Error{File: VocabTxt, Err: errors.New("file is empty")}
	}
	for i, line := range strings.Split(text, "\n") {
		piece := strings.TrimSuffix(line, "\r")
		if !utf8.ValidString(piece) {
			return v, &tokenize.Error{File: VocabTxt, Line: i + 1, Err: errors.New("not UTF-8")}
		}
		if err := v.IDs.Add(piece, int32(i)); err != nil {
			return v, &tokenize.Error{File: VocabTxt, Line: i + 1, Err: err}
		}
	}
	return v, nil
}

// PieceIDs is a JSON object from pieces to ids. Decoding rejects a piece that is listed twice; a plain
// map would keep the last.
type PieceIDs map[string]int32

// Has reports whether piece is in the vocabulary.
func (p PieceIDs) Has(piece string) bool {
	_, ok := p[piece]
	return ok
}

// Add assigns id to piece. It returns an error if piece has an id already.
func (p PieceIDs) Add(piece string, id int32) error {
	if first, ok := p[piece]; ok {
		return fmt.Errorf("%q is listed twice, as %d and %d", piece, first, id)
	}
	p[piece] = id
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *PieceIDs) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("vocab is not an object"), err)
	}
	*p = PieceIDs{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		piece := t.(string) // as the keys of an object are
		value, err := d.Token()
		if err != nil {
			return err
		}
		id, ok := value.(float64)
		if !ok || id != float64(int32(id)) {
			return fmt.Errorf("the id of %q is not a number in range", piece)
		}
		if err := p.Add(piece, int32(id)); err != nil {
			return err
		}
	}
	return nil
}
