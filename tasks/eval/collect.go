package eval

import (
	"cmp"
	"slices"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Keep selects the sentences of a run that are scored.
type Keep string

const (
	// KeepLast takes the best of the chains' last sentences, with repetitions: the published protocol.
	KeepLast Keep = "last"
	// KeepVisited takes the best distinct sentences among all visited.
	KeepVisited Keep = "visited"
)

// collector selects the sentences of one run.
type collector struct {
	p           *infill.Problem
	top         int
	temperature float64
	visited     *infill.Best // nil for KeepLast
}

func newCollector(keep Keep, p *infill.Problem, top int, temperature float64) *collector {
	c := &collector{p: p, top: top, temperature: temperature}
	if keep == KeepVisited {
		c.visited = infill.NewBest(p, top)
	}
	return c
}

// add records the state after a step.
func (c *collector) add(s *samplers.State) {
	if c.visited != nil {
		c.visited.Add(s.Step, s.ChainIDs, s.U, s.X)
	}
}

// sentences returns the sentences to score, best first. s is the last state.
func (c *collector) sentences(s *samplers.State) []infill.Sentence {
	var list []infill.Sentence
	if c.visited != nil {
		for _, v := range c.visited.Sentences() {
			list = append(list, v.Sentence)
		}
		return list
	}
	order := make([]int, s.Chains())
	for i := range order {
		order[i] = i
	}
	// Ties go to the first chain, so that equal runs give equal lists.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.U[b], s.U[a]) })
	for _, chain := range order[:min(c.top, len(order))] {
		list = append(list, c.p.Sentence(s.X.Chain(chain), s.U[chain]*c.temperature))
	}
	return list
}
