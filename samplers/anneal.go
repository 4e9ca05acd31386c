package samplers

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Annealer is a Kernel that can draw from π^β instead of π.
type Annealer interface {
	Kernel
	// Anneals reports whether Step goes by State.InverseTemperature. A run with
	// Config.InverseTemperature refuses kernels that do not.
	Anneals() bool
}

// Anneals implements Annealer.
func (g *gradient) Anneals() bool { return true }

// InverseTemperature returns β of the step being made, or of the last one made
// between steps: Beta in annealed runs, 1 in others.
func (s *State) InverseTemperature() float64 {
	if s.Annealed {
		return s.Beta
	}
	return 1
}

// gain is β·(U(y) - U(x)) for finite U(x); -Inf where y has probability zero,
// which it has at any temperature.
func (s *State) gain(x, y float64) float64 {
	if isZero(y) {
		return y
	}
	return s.InverseTemperature() * (y - x)
}

// evalFor writes to l what a step of s needs to know of the energy at x, with one
// evaluation: U and the gradient themselves in an annealed run, where they serve
// more than one β.
func (g *gradient) evalFor(ctx context.Context, l *Local, x energies.Batch, s *State) error {
	if !s.Annealed {
		return g.eval(ctx, l, x)
	}
	l.U, l.Grad = resize(l.U, x.Chains()), resize(l.Grad, len(x.Codes)*x.Space.Values)
	if err := g.energy.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: l.U, Grad: l.Grad}); err != nil {
		return err
	}
	return g.temper(ctx, l, x, s.Beta)
}

// maxBeta is the largest inverse temperature: with it β times a gradient, and its square,
// are still numbers in float32, in which kernels and energies hold them.
const maxBeta = 1e15

// temper fills all that l derives from its gradient at the inverse temperature
// beta, by the energy's own softmax where it offers that. On error l is as before.
func (g *gradient) temper(ctx context.Context, l *Local, x energies.Batch, beta float64) error {
	if !g.tempers {
		l.Tilt = nil
	} else {
		g.spare, g.betas = resize(g.spare, len(l.Grad)), resize(g.betas, x.Chains())
		for c := range g.betas {
			g.betas[c] = beta
		}
		if err := g.energy.Answer(ctx, energies.Query{Want: energies.Temper, X: x, Grad: l.Grad, Tilt: g.spare, Beta: g.betas}); err != nil {
			return err
		}
		l.Tilt, g.spare = g.spare, l.Tilt
	}
	l.half = 0.5 * beta
	l.sum(x)
	return nil
}

// anneal brings what s keeps to β of the step about to be made.
func (g *gradient) anneal(ctx context.Context, s *State) error {
	if !s.Annealed || s.half == 0.5*s.Beta {
		return nil
	}
	if err := g.temper(ctx, &s.Local, s.X, s.Beta); err != nil {
		return err
	}
	return s.checkTempered()
}

// checkTempered returns a *NonFiniteError where what s keeps was finite at another β and
// is not at this one.
func (s *State) checkTempered() error {
	for c := range s.Chains() {
		if err := s.check(c, &s.X, s.ChainIDs[c], s.Step); err != nil {
			s.half = math.NaN() // another attempt tempers again
			return err
		}
	}
	return nil
}

// setBeta sets s's inverse temperature for step number step.
func (c *Config) setBeta(s *State, step int64) error {
	if c.InverseTemperature == nil {
		return nil
	}
	beta := c.InverseTemperature(step)
	if !(beta >= 0 && beta <= maxBeta) {
		return &ConfigError{"InverseTemperature", fmt.Sprintf("%g at step %d; must be from 0 to %g", beta, step, maxBeta)}
	}
	s.Annealed, s.Beta = true, beta
	return nil
}
