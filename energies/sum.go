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
// A sum answers the queries that every term answers, except ModelConditional and Block. It answers
// Temper and Tilt if one of its terms answers Temper and allows the same values as the sum; that term
// computes the softmax. It answers Estimate if all terms have the same number of data terms and none is
// quenched; data terms are then sampled jointly by index.
type Sum struct {
	terms  []Term
	parts  []Oracle
	space  *Space
	can    Capabilities
	temper Oracle // nil: Temper is not supported
}

var _ Oracle = (*Sum)(nil)

// NewSum returns the sum of terms. Their spaces must have the same numbers of sites and values and the
// same kind. A value is allowed if every term allows it. The error is a *SpaceError.
func NewSum(terms ...Term) (*Sum, error) {
	if len(terms) == 0 {
		return nil, &SpaceError{-1, "a sum without terms"}
	}
	s := &Sum{terms: slices.Clone(terms), can: Capabilities{Answers: ^(ModelConditional | Block | Drafted)}}
	for k, t := range terms {
		if t.Energy == nil {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum is nil", k)}
		}
		if t.Weight-t.Weight != 0 {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum has weight %g", k, t.Weight)}
		}
		part := AsOracle(t.Energy)
		have, can := part.Space(), part.Capabilities()
		if s.space == nil {
			s.space, s.can.Terms = have, can.Terms
		}
		if have.Sites != s.space.Sites || have.Values != s.space.Values || have.Kind != s.space.Kind || have.Low != s.space.Low {
			return nil, &SpaceError{-1, fmt.Sprintf("term %d of a sum has the space %s, term 0 has %s", k, have, s.space)}
		}
		joint := *s.space
		joint.Allowed = both(s.space, have)
		s.space = &joint
		s.parts = append(s.parts, part)
		s.can.Answers &= can.Answers
		if can.Terms != s.can.Terms || can.Quenched {
			s.can.Answers &^= Estimate
		}
	}
	if err := s.space.Check(); err != nil {
		return nil, err
	}
	s.can.Answers &^= Tilt
	for _, part := range s.parts {
		if s.can.Answers.Has(Temper|Gradient) && sameAllowed(part.Space(), s.space) {
			s.temper = part
			s.can.Answers |= Tilt
		}
	}
	if s.temper == nil {
		s.can.Answers &^= Temper
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

// Capabilities implements Oracle.
func (s *Sum) Capabilities() Capabilities { return s.can }

// LogDensity implements Energy.
func (s *Sum) LogDensity(ctx context.Context, u []float64, x Batch) error {
	return s.Answer(ctx, Query{Want: Density, X: x, U: u})
}

// Answer implements Oracle.
func (s *Sum) Answer(ctx context.Context, q Query) error {
	switch {
	case !s.can.Answers.Has(q.Want):
		return &UnsupportedError{Want: q.Want}
	case q.Want == Temper:
		q.X.Space = s.temper.Space()
		return s.temper.Answer(ctx, q)
	case q.Want == Tilt:
		g := make([]float32, len(q.Tilt))
		if err := s.Answer(ctx, Query{Want: Gradient, X: q.X, U: q.U, Grad: g}); err != nil {
			return err
		}
		ones := slices.Repeat([]float64{1}, q.X.Chains())
		return s.Answer(ctx, Query{Want: Temper, X: q.X, Grad: g, Tilt: q.Tilt, Beta: ones})
	}
	part := q
	part.U, part.Grad, part.LogP = make([]float64, len(q.U)), make([]float32, len(q.Grad)), make([]float64, len(q.LogP))
	clear(q.U)
	clear(q.Grad)
	clear(q.LogP)
	for k, e := range s.parts {
		part.X.Space = e.Space()
		if err := e.Answer(ctx, part); err != nil {
			return err
		}
		addLogs(q.U, part.U, s.terms[k].Weight)
		addLogs(q.LogP, part.LogP, s.terms[k].Weight)
		for i, v := range part.Grad {
			q.Grad[i] += float32(s.terms[k].Weight) * v
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
