package samplertest

import (
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// reverse compares log q(x'|x) as Draw returns it with what LogReverse returns where x' is the state and x the
// proposal: one formula, read twice. It needs a proposal that remembers nothing of what it drew.
func reverse(f *family, c *testCase) {
	k, ok := c.kernel(f.t, c.p.Energy, false).(*samplers.Metropolis)
	if !ok || k.Prepare != nil {
		return
	}
	const chains = 60
	states := c.possible()
	s := c.start(f.t, k, chains, 1, func(j int) int { return states[j%len(states)] }, nil)
	back, forward := *s, make([]float64, chains)
	back.Point = samplers.Point{X: energies.NewBatch(c.p.Space(), chains)}
	var w samplers.Worker
	for j := range forward {
		s.Stream(&w.Stream, j, samplers.UseProposal)
		forward[j] = k.Proposal.Draw(&w, s, j, back.X.Chain(j))
	}
	if err := k.Evaluate(background, &back.Point, s.Beta); err != nil {
		f.t.Fatalf("%s: %v", c.name, err)
	}
	for j, want := range forward {
		if got := k.Proposal.LogReverse(&w, &back, j, &s.Point); !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
			f.t.Errorf("%s: from %v to %v Draw has log q = %v, LogReverse %v", c.name, s.X.Chain(j), back.X.Chain(j), want, got)
			return
		}
	}
}
