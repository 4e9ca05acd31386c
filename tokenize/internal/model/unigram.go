package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// unigram finds the split with the largest sum of scores (Kudo 2018, "Subword Regularization"). A
// character that is not in the vocabulary is unknown and scores 10 below the lowest piece.
type unigram struct {
	ids      files.PieceIDs
	scores   []float64
	unk      int32 // -1 if none
	unkScore float64
	longest  int // length of the longest piece in bytes
	bytes    bool
}

// newUnigram reads a vocabulary of pieces and scores in the order of their ids.
func newUnigram(s Spec, v *files.Vocabulary) (Model, error) {
	var rows [][2]json.RawMessage
	if err := json.Unmarshal(s.Vocab, &rows); err != nil {
		return nil, err
	}
	m := &unigram{ids: files.PieceIDs{}, scores: make([]float64, len(rows)), unk: -1, bytes: s.ByteFallback, unkScore: math.Inf(1)}
	for id, row := range rows {
		var piece string
		if err := errors.Join(json.Unmarshal(row[0], &piece), json.Unmarshal(row[1], &m.scores[id])); err != nil {
			return nil, fmt.Errorf("piece %d: %w", id, err)
		}
		if err := m.ids.Add(piece, int32(id)); err != nil {
			return nil, err
		}
		m.longest = max(m.longest, len(piece))
		m.unkScore = min(m.unkScore, m.scores[id])
		if s.UnkID != nil && int(*s.UnkID) == id {
			m.unk, v.Unk = int32(id), piece
		}
	}
	m.unkScore -= 10
	v.IDs = m.ids
	if m.unk < 0 {
		return nil, errors.New("model.unk_id is missing")
	}
	return m, nil
}

func (m *unigram) Split(out []Piece, word []aligned.Char) ([]Piece, error) {
	text, at := aligned.String(word), aligned.Offsets(word)
	// best[i] is the best split of the first i characters: its score and its last piece.
	type node struct {
		score float64
		from  int // -1: no split found yet
		id    int32
	}
	best := make([]node, len(word)+1)
	for i := range best[1:] {
		best[i+1].from = -1
	}
	for i := range word {
		offer := func(end int, score float64, id int32) {
			if n := &best[end]; n.from < 0 || score > n.score {
				*n = node{score, i, id}
			}
		}
		single := false
		for end := i + 1; end <= len(word) && at[end]-at[i] <= m.longest; end++ {
			if id, ok := m.ids[text[at[i]:at[end]]]; ok {
				offer(end, m.scores[id]+best[i].score, id)
				single = single || end == i+1
			}
		}
		if !single {
			offer(i+1, m.unkScore+best[i].score, m.unk)
		}
	}
	var pieces []Piece // in reverse order
	for end := len(word); end > 0; end = best[end].from {
		n := best[end]
		if last := len(pieces) - 1; n.id == m.unk && last >= 0 && pieces[last].ID == m.unk {
			pieces[last].Start = n.from // join neighbouring unknown pieces
			continue
		}
		pieces = append(pieces, Piece{n.id, n.from, end})
	}
	for i := len(pieces) - 1; i >= 0; i-- {
		p := pieces[i]
		if p.ID != m.unk {
			out = append(out, p)
			continue
		}
		out = m.unknown(out, p, text[at[p.Start]:at[p.End]])
	}
	return out, nil
}

// unknown appends the pieces of unknown text: its byte pieces if the vocabulary has all of them, else
// p.
func (m *unigram) unknown(out []Piece, p Piece, text string) []Piece {
	if id, ok := m.ids[text]; ok {
		return append(out, Piece{id, p.Start, p.End})
	}
	if ids := byteIDs(m.ids, text); m.bytes && ids != nil {
		for _, id := range ids {
			out = append(out, Piece{id, p.Start, p.End})
		}
		return out
	}
	return append(out, p)
}

// byteIDs returns the ids of the byte pieces "<0x41>" of text, or nil if one is missing.
func byteIDs(ids files.PieceIDs, text string) []int32 {
	list := make([]int32, len(text))
	for i := range len(text) {
		id, ok := ids[fmt.Sprintf("<0x%02X>", text[i])]
		if !ok {
			return nil
		}
		list[i] = id
	}
	return list
}
