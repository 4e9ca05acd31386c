package infill

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies"
)

// Visited is a filled text that a run has visited.
type Visited struct {
	Sentence
	// Chain and Step say where it was met first; steps count from 1, warm-up included.
	Chain int64 `json:"chain"`
	Step  int64 `json:"step"`
}

// bestSentences keeps the best distinct sentences that a run visits, in memory that does not
// grow with the run. Sentences are distinct when their texts are.
//
// They are ordered by U, the highest first, then by text. Of a text met several times
// the first visit counts, by step and then by chain, with the U it had there.
type bestSentences struct {
	p    *Problem
	keep int
	list []kept
}

type kept struct {
	Visited
	u     float64 // as the energy gave it
	codes []int32
}

func newBest(p *Problem, keep int) *bestSentences { return &bestSentences{p: p, keep: keep} }

// chainIDs numbers n chains.
func chainIDs(n int) []int64 {
	ids := make([]int64, n)
	for k := range ids {
		ids[k] = int64(k)
	}
	return ids
}

// Add shows the states of one step: x with log-densities u ([chain]), in chains with
// the given numbers. It copies what it keeps. Steps must be shown in order.
func (b *bestSentences) Add(step int64, chains []int64, u []float64, x energies.Batch) {
	for c, id := range chains {
		b.add(step, id, u[c], x.Chain(c))
	}
}

func (b *bestSentences) add(step, chain int64, u float64, codes []int32) {
	if b.keep < 1 || len(b.list) == b.keep && u < b.list[b.keep-1].u {
		return
	}
	for _, k := range b.list {
		if slices.Equal(k.codes, codes) {
			return
		}
	}
	n := kept{Visited{b.p.Sentence(codes, u*b.p.m.temperature()), chain, step}, u, slices.Clone(codes)}
	// Different pieces can give one text: its best spelling counts.
	if i := slices.IndexFunc(b.list, func(k kept) bool { return k.Text == n.Text }); i >= 0 {
		if u <= b.list[i].u {
			return
		}
		b.list = slices.Delete(b.list, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(b.list, n, func(k, n kept) int {
		return cmp.Or(cmp.Compare(n.u, k.u), strings.Compare(k.Text, n.Text))
	})
	b.list = slices.Insert(b.list, at, n)
	b.list = b.list[:min(len(b.list), b.keep)]
}

// Sentences returns the sentences kept, the best first.
func (b *bestSentences) Sentences() []Visited {
	out := make([]Visited, len(b.list))
	for i, k := range b.list {
		out[i] = k.Visited
	}
	return out
}
