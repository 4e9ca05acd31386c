package energies

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Term is an energy with its weight in a sum.
type Term struct {
	Weight float64
	Energy Energy
}

// Sum is the weighted sum U = Σ_k w_k·U_k of energies on one space: the product of experts Π_k
// π_k^{w_k} (Hinton 2002). A sum of one term is that energy at inverse temperature w. A state with
// probability zero under any term has probability zero, whatever the sign of the weight.
//
// A sum can what every term can, but not predict, and has no colours or draft. It tilts if one of its terms
// is a Temperer that allows the same values as the sum; that term computes the softmax. It estimates if all
// terms have the same number of data terms and none is quenched; data terms are then sampled jointly by index.
type Sum struct {
	terms  []Term
	space  *Space
	can    Capability
	temper Temperer // nil: no tilts
}

var (
	_ Tilter      = (*Sum)(nil)
	_ Temperer    = (*Sum)(nil)
	_ Conditional = (*Sum)(nil)
	_ Minibatch   = (*Sum)(nil)
)

// NewSum returns the sum of terms. Their spaces must have the same numbers of sites and values and the
// same kind. A value is allowed if every term allows it. The error is a *SpaceError.
func NewSum(terms ...Term) (*Sum, error) {
	if len(terms) == 0 {
		return nil, &SpaceError{-1, "a sum without terms"}
	}
	s := &Sum{terms: slices.Clone(terms)}
	for k, t := range terms {
		if t.Energy == nil {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum is nil", k)}
		}
		if t.Weight-t.Weight != 0 {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum has weight %g", k, t.Weight)}
		}
		have := t.Energy.Space()
		if s.space == nil {
			s.space = have
		}
		if have.Sites != s.space.Sites || have.Values != s.space.Values || have.Kind != s.space.Kind || have.Low != s.space.Low {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum has the space %s, term 0 has %s", k, have, s.space)}
		}
		joint := *s.space
		joint.Allowed = both(s.space, have)
		s.space = &joint
	}
	if err := s.space.Check(); err != nil {
		return nil, err
	}
	for _, c := range []Capability{Gradient, Conditionals, Minibatches} {
		if !slices.ContainsFunc(terms, func(t Term) bool { return Lacks(t.Energy, c) != nil }) {
			s.can |= c
		}
	}
	for _, t := range terms {
		part, err := As[Temperer]("", t.Energy)
		if err == nil && s.can.Has(Gradient) && sameAllowed(part.Space(), s.space) {
			s.temper = part
			s.can |= Tilt | Temper
		}
		if s.can.Has(Minibatches) {
			data, _ := As[Minibatch]("", t.Energy)
			if _, quenched := data.(Quenched); quenched || data.Terms() != s.Terms() {
				s.can &^= Minibatches
			}
		}
	}
	return s, nil
}

// both returns the codes allowed by two spaces, in the format of Space.Allowed.
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

// sameAllowed reports whether two spaces of equal size allow the same values.
func sameAllowed(a, b *Space) bool {
	for i := range a.Sites {
		for v := range int32(a.Values) {
			if a.Allows(i, v) != b.Allows(i, v) {
				return false
			}
		}
		if len(a.Allowed) <= 1 && len(b.Allowed) <= 1 {
			break // the same lists apply to all sites
		}
	}
	return true
}

// Space implements Energy.
func (s *Sum) Space() *Space { return s.space }

// Lacks implements what [As] asks for.
func (s *Sum) Lacks(c Capability) error {
	if s.can.Has(c) {
		return nil
	}
	return &UnsupportedError{Want: c}
}

// LogDensity implements Energy.
func (s *Sum) LogDensity(ctx context.Context, u []float64, x Batch) error {
	return s.add(u, nil, x, func(e Energy, u []float64, _ []float32, x Batch) error { return e.LogDensity(ctx, u, x) })
}

// LogDensityGrad implements Differentiable.
func (s *Sum) LogDensityGrad(ctx context.Context, u []float64, g []float32, x Batch) error {
	return s.add(u, g, x, func(e Energy, u []float64, g []float32, x Batch) error {
		part, err := As[Differentiable]("", e)
		if err != nil {
			return err
		}
		return part.LogDensityGrad(ctx, u, g, x)
	})
}

// LogConditional implements Conditional.
func (s *Sum) LogConditional(ctx context.Context, lp []float64, site int, x Batch) error {
	return s.add(lp, nil, x, func(e Energy, lp []float64, _ []float32, x Batch) error {
		part, err := As[Conditional]("", e)
		if err != nil {
			return err
		}
		return part.LogConditional(ctx, lp, site, x)
	})
}

// Terms implements Minibatch.
func (s *Sum) Terms() int {
	part, err := As[Minibatch]("", s.terms[0].Energy)
	if err != nil {
		return 0
	}
	return part.Terms()
}

// EstimateGrad implements Minibatch.
func (s *Sum) EstimateGrad(ctx context.Context, u []float64, g []float32, x Batch, terms [][]int32) error {
	return s.add(u, g, x, func(e Energy, u []float64, g []float32, x Batch) error {
		part, err := As[Minibatch]("", e)
		if err != nil {
			return err
		}
		return part.EstimateGrad(ctx, u, g, x, terms)
	})
}

// Temper implements Temperer.
func (s *Sum) Temper(ctx context.Context, p, g []float32, beta []float64) error {
	if s.temper == nil {
		return s.Lacks(Temper)
	}
	return s.temper.Temper(ctx, p, g, beta)
}

// LogDensityTilt implements Tilter.
func (s *Sum) LogDensityTilt(ctx context.Context, u []float64, p []float32, x Batch) error {
	g := make([]float32, len(p))
	if err := s.LogDensityGrad(ctx, u, g, x); err != nil {
		return err
	}
	return s.Temper(ctx, p, g, slices.Repeat([]float64{1}, len(u)))
}

// add sets u and g to weighted sums of what ask returns for each term.
func (s *Sum) add(u []float64, g []float32, x Batch, ask func(e Energy, u []float64, g []float32, x Batch) error) error {
	partU, partG := make([]float64, len(u)), make([]float32, len(g))
	clear(u)
	clear(g)
	for _, t := range s.terms {
		x.Space = t.Energy.Space()
		if err := ask(t.Energy, partU, partG, x); err != nil {
			return err
		}
		addLogs(u, partU, t.Weight)
		for i, v := range partG {
			g[i] += float32(t.Weight) * v
		}
	}
	return nil
}

// addLogs adds weighted log-densities; -Inf stays -Inf.
func addLogs(sum, part []float64, weight float64) {
	for c, v := range part {
		if math.IsInf(v, -1) {
			sum[c] = v
		} else {
			sum[c] += weight * v
		}
	}
}
