package energies

import (
	"context"
	"slices"
)

// A sum has the methods that its terms allow, and no others: each type below adds some.

type (
	temperedSum struct {
		*Sum
		tilt Tempered // a term that allows what the sum does
	}
	stochasticSum         struct{ *Sum }
	temperedStochasticSum struct {
		temperedSum
		stochasticSum
		*Sum // whose methods come before those of the two
	}
)

var (
	_ Differentiable = (*Sum)(nil)
	_ Tempered       = temperedSum{}
	_ Stochastic     = stochasticSum{}
	_ Tempered       = temperedStochasticSum{}
	_ Stochastic     = temperedStochasticSum{}
)

// widest returns the sum with all that its terms allow.
func (s *Sum) widest() Energy {
	var tilt Tempered
	tempered, stochastic, size := true, true, -1
	for _, t := range s.terms {
		e, ok := t.Energy.(Tempered)
		tempered = tempered && ok
		if ok && sameAllowed(t.Energy.Space(), s.space) {
			tilt = e
		}
		d, ok := t.Energy.(Stochastic)
		stochastic = stochastic && ok && (size < 0 || size == d.Terms())
		if stochastic {
			size = d.Terms()
		}
	}
	tempered = tempered && tilt != nil
	switch {
	case tempered && stochastic:
		return temperedStochasticSum{temperedSum{s, tilt}, stochasticSum{s}, s}
	case tempered:
		return temperedSum{s, tilt}
	case stochastic:
		return stochasticSum{s}
	}
	return s
}

// sameAllowed reports whether two spaces of one size allow the same values.
func sameAllowed(a, b *Space) bool {
	for i := range a.Sites {
		x, y := a.AllowedAt(i), b.AllowedAt(i)
		if len(x) == a.Values {
			x = nil
		}
		if len(y) == b.Values {
			y = nil
		}
		if (x == nil) != (y == nil) || !slices.Equal(x, y) {
			return false
		}
	}
	return true
}

// LogDensityTilt writes U and the softmax of half its gradient; see [Tilted].
func (s temperedSum) LogDensityTilt(ctx context.Context, u []float64, p []float32, x Batch) error {
	g := make([]float32, len(p))
	if err := s.LogDensityGrad(ctx, u, g, x); err != nil {
		return err
	}
	return s.Tilt(ctx, p, g, 1)
}

// Tilt writes the softmax of ½β·g, which depends on the space alone; see [Tempered].
func (s temperedSum) Tilt(ctx context.Context, p, g []float32, beta float64) error {
	return s.tilt.Tilt(ctx, p, g, beta)
}

// Terms returns the number of terms that each energy of the sum has; see [Stochastic].
func (s stochasticSum) Terms() int { return s.terms[0].Energy.(Stochastic).Terms() }

// EstimateGrad adds up estimates from the same terms of each energy; see [Stochastic].
func (s stochasticSum) EstimateGrad(ctx context.Context, u []float64, g []float32, x Batch, batch [][]int32) error {
	return s.sumGrad(u, g, x, func(e Energy, u []float64, g []float32, x Batch) error {
		return e.(Stochastic).EstimateGrad(ctx, u, g, x, batch)
	})
}
