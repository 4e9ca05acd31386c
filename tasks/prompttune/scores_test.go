package prompttune

import (
	"errors"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// memory is the simplest Scores.
type memory struct {
	known map[string]float64
	fails error
}

func (m *memory) Get(text string) (float64, bool) {
	cosine, ok := m.known[text]
	return cosine, ok
}

func (m *memory) Put(texts []string, cosines []float64) error {
	for i, text := range texts {
		m.known[text] = cosines[i]
	}
	return m.fails
}

// TestScores: what is known is not evaluated again, and counts all the same.
func TestScores(t *testing.T) {
	m := open(t)
	p := problem(t, m, "the _ _ on _", proposals{From: fromTokens})
	alone := NewBest(p, BestOptions{Keep: 1000})
	visit(t, p, alone, 0)
	kept := &memory{known: map[string]float64{}}
	before := m.clip.Sequences()
	first := NewBest(p, BestOptions{Keep: 1000, Scores: kept})
	visit(t, p, first, 0)
	between := m.clip.Sequences()
	second := NewBest(p, BestOptions{Keep: 1000, Scores: kept})
	visit(t, p, second, 0)
	if n := int64(len(kept.known)); n == 0 || n != first.numScored() || first.numScored() != second.numScored() || first.numScored() != alone.numScored() {
		t.Errorf("%d texts are known; %d, %d and %d were scored", n, alone.numScored(), first.numScored(), second.numScored())
	}
	// Both go through the same states; only the first evaluates texts besides.
	if saved := (between - before) - (m.clip.Sequences() - between); saved != first.numScored() {
		t.Errorf("%d texts less went through the model; %d were known", saved, first.numScored())
	}
	same := func(a, b Prompt) bool {
		return a.Text == b.Text && a.U == b.U && a.Step == b.Step && a.Chain == b.Chain && a.LogP == b.LogP
	}
	if !slices.EqualFunc(first.Prompts(), alone.Prompts(), same) || !slices.EqualFunc(second.Prompts(), alone.Prompts(), same) {
		t.Error("the prompts differ")
	}
	full := &memory{known: map[string]float64{}, fails: errors.New("full")}
	b := NewBest(p, BestOptions{Keep: 1, Scores: full, Estimates: true})
	if _, err := b.Add(t.Context(), 1, []int64{0}, 1, []float64{0}, energies.NewBatch(p.Energy.Space(), 1)); !errors.Is(err, full.fails) {
		t.Errorf("scores that cannot be kept: %v", err)
	}
}
