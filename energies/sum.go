package energies

import (
	"context"
	"fmt"
	"slices"
)

// Term is an energy with its weight in a sum.
type Term struct {
	Weight float64
	Energy Energy
}

// Sum is the weighted sum U = Σ_k w_k·U_k of energies on one space: the product of
// experts Π_k π_k^{w_k} (Hinton 2002). A state that any term gives probability zero
// has probability zero, whatever the sign of its weight.
type Sum struct {
	terms []Term
	space *Space
	// differs names the first term without a gradient, -1 where all have one.
	differs int
}

// SumError reports terms that cannot be added.
type SumError struct {
	Term   int // its index, or -1 where the list is at fault
	Reason string
}

func (e *SumError) Error() string {
	if e.Term < 0 {
		return "energies: sum: " + e.Reason
	}
	return fmt.Sprintf("energies: sum: term %d: %s", e.Term, e.Reason)
}

// NewSum returns the sum of terms. Their spaces must have as many sites and values and
// be of one kind; a value is allowed where every term allows it. Errors: *SumError; a
// *SpaceError where no value is left at a site.
//
// The result is a [Differentiable] if every term is, else only an [Energy]. It is a
// [Tempered] too if every term is and one of them allows just what the sum does, and a
// [Stochastic] if every term is and all have the same number of terms: those of one index
// go together.
func NewSum(terms ...Term) (Energy, error) {
	if len(terms) == 0 {
		return nil, &SumError{-1, "no terms"}
	}
	s := &Sum{terms: slices.Clone(terms), differs: -1}
	for k, t := range terms {
		if t.Energy == nil {
			return nil, &SumError{k, "no energy"}
		}
		if t.Weight-t.Weight != 0 {
			return nil, &SumError{k, fmt.Sprintf("weight %g", t.Weight)}
		}
		have := t.Energy.Space()
		if s.space == nil {
			s.space = have
		}
		if have.Sites != s.space.Sites || have.Values != s.space.Values || have.Kind != s.space.Kind || have.Low != s.space.Low {
			return nil, &SumError{k, fmt.Sprintf("a %s space of %d sites and %d values from %d, where term 0 has a %s one of %d and %d from %d",
				have.Kind, have.Sites, have.Values, have.Low, s.space.Kind, s.space.Sites, s.space.Values, s.space.Low)}
		}
		joint := *s.space
		joint.Allowed = both(s.space, have)
		s.space = &joint
		if _, ok := t.Energy.(Differentiable); !ok && s.differs < 0 {
			s.differs = k
		}
	}
	if err := s.space.Check(); err != nil {
		return nil, err
	}
	if s.differs >= 0 {
		return energyOnly{s}, nil
	}
	return s.widest(), nil
}

// energyOnly hides the gradient of a sum that has none.
type energyOnly struct{ Energy }

// both returns what two spaces allow, in the form of Space.Allowed.
func both(a, b *Space) [][]int32 {
	switch {
	case len(a.Allowed) == 0:
		return b.Allowed
	case len(b.Allowed) == 0:
		return a.Allowed
	}
	n := max(len(a.Allowed), len(b.Allowed))
	out := make([][]int32, n)
	for i := range out {
		out[i] = []int32{}
		for _, v := range a.AllowedAt(i) {
			if b.Allows(i, v) {
				out[i] = append(out[i], v)
			}
		}
	}
	return out
}

// Space returns the states of the sum.
func (s *Sum) Space() *Space { return s.space }

// LogDensity writes U; see [Energy].
func (s *Sum) LogDensity(ctx context.Context, u []float64, x Batch) error {
	part := make([]float64, len(u))
	clear(u)
	for _, t := range s.terms {
		if err := t.Energy.LogDensity(ctx, part, t.batch(x)); err != nil {
			return err
		}
		t.add(u, part)
	}
	return nil
}

// LogDensityGrad writes U and its gradient; see [Differentiable].
func (s *Sum) LogDensityGrad(ctx context.Context, u []float64, g []float32, x Batch) error {
	return s.sumGrad(u, g, x, func(e Energy, u []float64, g []float32, x Batch) error {
		return e.(Differentiable).LogDensityGrad(ctx, u, g, x)
	})
}

// sumGrad adds up what f writes for each energy.
func (s *Sum) sumGrad(u []float64, g []float32, x Batch, f func(e Energy, u []float64, g []float32, x Batch) error) error {
	part, slope := make([]float64, len(u)), make([]float32, len(g))
	clear(u)
	clear(g)
	for _, t := range s.terms {
		if err := f(t.Energy, part, slope, t.batch(x)); err != nil {
			return err
		}
		t.add(u, part)
		w := float32(t.Weight)
		for i, v := range slope {
			g[i] += w * v
		}
	}
	return nil
}

// batch is x in the term's own space.
func (t Term) batch(x Batch) Batch {
	x.Space = t.Energy.Space()
	return x
}

// add adds the weighted term; what is impossible stays so.
func (t Term) add(u, part []float64) {
	for c, v := range part {
		if v < 0 && v-v != 0 { // -Inf, not NaN
			u[c] = v
		} else {
			u[c] += t.Weight * v
		}
	}
}
