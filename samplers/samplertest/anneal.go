package samplertest

import (
	"context"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/samplers"
)

// schedule is an inverse temperature by step, with a name for messages; nil means none.
type schedule struct {
	name string
	beta func(step int64) float64
}

// Annealed kernels are tested at a β that differs from step to step, so that one taken
// from a neighbouring step shows, and at a constant one, where exact kernels have a law
// to keep.
var (
	varied = &schedule{"β varied", func(step int64) float64 { return [...]float64{0.5, 1.6, 0.9, 2}[step%4] }}
	steady = &schedule{"β = 0.6", func(int64) float64 { return 0.6 }}
)

// At returns the problem of π^β: β times its log-densities and gradients.
func (p *Problem) At(beta float64) (*Problem, error) {
	q := *p
	q.Gradient = make([]float64, len(p.Gradient))
	for k, g := range p.Gradient {
		q.Gradient[k] = beta * g
	}
	q.beta = p.beta * beta
	var err error
	q.Law, err = table.Enumerate(context.Background(), power{p.Energy, q.beta})
	return &q, err
}

// power is exp(U) to the power beta.
type power struct {
	energies.Energy
	beta float64
}

func (e power) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	err := e.Energy.LogDensity(ctx, u, x)
	for c := range u {
		u[c] *= e.beta
	}
	return err
}

// at returns the problem that step number step of the case is about.
func (c *testCase) at(step int64) *Problem {
	if c.anneal == nil {
		return c.p
	}
	beta := c.anneal.beta(step)
	if c.tempered[beta] == nil {
		q, err := c.p.At(beta)
		if err != nil {
			panic(err) // it has been enumerated at β = 1
		}
		c.tempered[beta] = q
	}
	return c.tempered[beta]
}

// heat sets the inverse temperature of s's next step, as a run does.
func (c *testCase) heat(s *samplers.State) {
	if c.anneal != nil {
		s.Beta = slices.Repeat([]float64{c.anneal.beta(s.Step)}, s.Chains())
	}
}
