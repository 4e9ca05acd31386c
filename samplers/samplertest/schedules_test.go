package samplertest

import (
	"context"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/samplers"
)

// schedule is an inverse temperature per step, with a name for messages; nil means none.
type schedule struct {
	name string
	beta func(step int64) float64
}

// Annealed kernels are tested with a β that changes at every step, which reveals a β taken from the
// wrong step, and with a constant β, where exact kernels have a stationary distribution.
var (
	varied = &schedule{"β varied", func(step int64) float64 { return [...]float64{0.5, 1.6, 0.9, 2}[step%4] }}
	steady = &schedule{"β = 0.6", func(int64) float64 { return 0.6 }}
)

// At returns the problem of π^β, with log-densities and gradients multiplied by β.
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

// at returns the problem at the given step of the case.
func (c *testCase) at(step int64) *Problem {
	if c.anneal == nil {
		return c.p
	}
	beta := c.anneal.beta(step)
	if c.tempered[beta] == nil {
		q, err := c.p.At(beta)
		if err != nil {
			panic(err) // enumeration succeeded at β = 1
		}
		c.tempered[beta] = q
	}
	return c.tempered[beta]
}

// heat sets the inverse temperature of the next step of s, as a run does.
func (c *testCase) heat(s *samplers.State) {
	if c.anneal != nil {
		s.Beta = slices.Repeat([]float64{c.anneal.beta(s.Step)}, s.Chains())
	}
}
