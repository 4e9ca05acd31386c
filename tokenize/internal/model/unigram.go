package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// unigram finds the split with the largest sum of scores (Kudo 2018, "Subword Regularization"). A
// character that is not in the vocabulary is unknown and scores 10 below the lowest piece.
type unigram struct {
	Vocabulary
	unk      int32
	unkScore float64
	longest  int // length of the longest piece in bytes
	bytes    bool
}

func newUnigram(s *Spec) (Model, error) {
	m := &unigram{Vocabulary: s.Vocab, unk: -1, bytes: s.ByteFallback, unkScore: slices.Min(s.Vocab.Scores) - 10}
	for piece, id := range m.IDs {
		m.longest = max(m.longest, len(piece))
		if s.UnkID != nil && *s.UnkID == id {
			m.unk, s.Unk = id, piece
		}
	}
	if m.unk < 0 {
		return nil, errors.New("model.unk_id is missing")
	}
	return m.split, nil
}

func (m *unigram) split(out []Piece, word []aligned.Char) []Piece {
	text, at := aligned.String(word), aligned.Offsets(word)
	// best[i] is the best split of the first i characters: its score and its last piece.
	type node struct {
		score float64
		Piece
	}
	best := make([]node, len(word)+1)
	for i := range word {
		offer := func(end int, score float64, id int32) {
			if n := &best[end]; n.End == 0 || score > n.score {
				*n = node{score, Piece{id, i, end}}
			}
		}
		single := false
		for end := i + 1; end <= len(word) && at[end]-at[i] <= m.longest; end++ {
			if id, ok := m.IDs[text[at[i]:at[end]]]; ok {
				offer(end, m.Scores[id]+best[i].score, id)
				single = single || end == i+1
			}
		}
		if !single {
			offer(i+1, m.unkScore+best[i].score, m.unk)
		}
	}
	var pieces []Piece // in reverse order
	for end := len(word); end > 0; end = best[end].Start {
		p := best[end].Piece
		if last := len(pieces) - 1; p.ID == m.unk && last >= 0 && pieces[last].ID == m.unk {
			pieces[last].Start = p.Start // join neighbouring unknown pieces
			continue
		}
		pieces = append(pieces, p)
	}
	for _, p := range slices.Backward(pieces) {
		ids := []int32{p.ID}
		if p.ID == m.unk {
			ids = m.unknown(text[at[p.Start]:at[p.End]])
		}
		for _, id := range ids {
			out = append(out, Piece{id, p.Start, p.End})
		}
	}
	return out
}

// unknown returns the ids of unknown text: that of joined pieces that are a piece, or those of its bytes.
func (m *unigram) unknown(text string) []int32 {
	if id, ok := m.IDs[text]; ok {
		return []int32{id}
	}
	if ids := m.byteIDs(text); m.bytes && ids != nil {
		return ids
	}
	return []int32{m.unk}
}

// byteIDs returns the ids of the byte pieces "<0x41>" of text, or nil if one is missing.
func (v *Vocabulary) byteIDs(text string) []int32 {
	list := make([]int32, len(text))
	for i := range len(text) {
		id, ok := v.IDs[fmt.Sprintf("<0x%02X>", text[i])]
		if !ok {
			return nil
		}
		list[i] = id
	}
	return list
}
