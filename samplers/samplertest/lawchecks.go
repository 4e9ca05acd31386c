package samplertest

import (
	"fmt"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Numbers of chains; each is one draw of the law that is tested.
const (
	oneStepChains = 3000
	manyChains    = 4000
	manySteps     = 4
)

// oneStep compares the frequencies of states after one step, from several
// states and in several steps of the schedule, with the law's row.
func oneStep(f *family, c *testCase) {
	k := c.kernel(f.t, c.p.Energy, false)
	states := c.possible()
	for j := range 3 {
		from, step := states[(1+2*j)*len(states)/6], int64(j)
		counts := c.counts(f, k, oneStepChains, 1, step, func(int) int { return from })
		f.chiSquared(fmt.Sprintf("%s, state %d", c.name, from), counts, c.law.Row(c.at(step), c.lawSet, step, from))
	}
}

// severalSteps does the same after several steps, where what is kept from step
// to step plays a part.
func severalSteps(f *family, c *testCase) {
	k := c.kernel(f.t, c.p.Energy, false)
	states := c.possible()
	from := states[len(states)/2]
	counts := c.counts(f, k, manyChains, manySteps, 0, func(int) int { return from })
	f.chiSquared(c.name, counts, c.law.after(c.at, c.lawSet, 0, manySteps, from))
}

// stationarity starts an exact kernel from exact draws of π, where any number of
// steps must leave them.
func stationarity(f *family, c *testCase) {
	if !c.Exact || c.anneal == varied {
		return
	}
	p := c.at(0)
	k := c.kernel(f.t, c.p.Energy, false)
	var stream rng.Stream
	stream.Reset(99, 0, 0, 0)
	draw := func(int) int { return p.Law.Draw(stream.Float64()) }
	counts := c.counts(f, k, manyChains, manySteps, 0, draw)
	f.chiSquared(c.name, counts, p.Law.P)
}

// counts runs n chains for some steps and counts the states they end in.
func (c *testCase) counts(f *family, k samplers.Kernel, n, steps int, first int64, from func(int) int) []int {
	f.t.Helper()
	s := c.start(f.t, k, n, first, from)
	var info samplers.Info
	for range steps {
		c.heat(s)
		if err := k.Step(background, s, &info); err != nil {
			f.t.Fatalf("%s: %v", c.name, err)
		}
	}
	counts := make([]int, c.p.Law.Len())
	for j := range n {
		counts[c.p.Law.Find(s.X.Chain(j))]++
	}
	return counts
}
