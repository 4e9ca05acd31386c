package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Vocabulary maps pieces to ids. In JSON it is an object, or a list of pieces with scores in the order of
// their ids.
type Vocabulary struct {
	IDs    map[string]int32
	Scores []float64 // of each id; nil for an object
}

// Has reports whether piece is in the vocabulary.
func (v *Vocabulary) Has(piece string) bool {
	_, ok := v.IDs[piece]
	return ok
}

// Lookup returns the id of a piece that the vocabulary must have.
func (v *Vocabulary) Lookup(piece string) (int32, error) {
	id, ok := v.IDs[piece]
	if !ok {
		return -1, fmt.Errorf("vocabulary has no %s", piece)
	}
	return id, nil
}

// Add assigns id to piece. It returns an error if piece has an id already.
func (v *Vocabulary) Add(piece string, id int32) error {
	if first, ok := v.IDs[piece]; ok {
		return fmt.Errorf("%q is listed twice, as %d and %d", piece, first, id)
	}
	if v.IDs == nil {
		v.IDs = map[string]int32{}
	}
	v.IDs[piece] = id
	return nil
}

// AddScored adds a piece with the next id.
func (v *Vocabulary) AddScored(piece string, score float64) error {
	v.Scores = append(v.Scores, score)
	return v.Add(piece, int32(len(v.Scores)-1))
}

// UnmarshalJSON implements json.Unmarshaler. It rejects a piece that is listed twice; a plain map would
// keep the last.
func (v *Vocabulary) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var rows [][2]any
		if err := json.Unmarshal(data, &rows); err != nil {
			return fmt.Errorf("vocab is neither an object nor a list of pieces with scores: %w", err)
		}
		for i, row := range rows {
			piece, isText := row[0].(string)
			score, isNumber := row[1].(float64)
			if !isText || !isNumber {
				return fmt.Errorf("piece %d: %v is not a text and a score", i, row)
			}
			if err := v.AddScored(piece, score); err != nil {
				return err
			}
		}
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, _ := d.Token(); t != json.Delim('{') {
		return errors.New("vocab is not an object")
	}
	for d.More() {
		key, _ := d.Token() // data is valid JSON
		piece := key.(string)
		var id *int32
		if err := d.Decode(&id); err != nil || id == nil {
			return fmt.Errorf("the id of %q is not a number in range", piece)
		}
		if err := v.Add(piece, *id); err != nil {
			return err
		}
	}
	return nil
}
