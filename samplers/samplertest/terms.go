package samplertest

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Terms is the number of terms that problems are made of where a kernel draws
// minibatches.
const Terms = 3

// TermField is what term j adds to its share of the gradient, ∂ψ_j/∂onehot[i,v] =
// g[i,v]/Terms + TermField(j, i, v) at any state; the terms' fields cancel.
func (p *Problem) TermField(j, i int, v int32) float64 {
	f := func(j int) float64 { return 0.3 * math.Sin(float64(1+7*j+3*i+2*int(v)*(j+1))) }
	mean := 0.0
	for k := range Terms {
		mean += f(k) / Terms
	}
	return p.beta * (f(j) - mean)
}

// EstimatedD is p.D of the gradient that a minibatch of distinct terms estimates.
func (p *Problem) EstimatedD(k, i int, v int32, batch []int) float64 {
	d, cur := p.D(k, i, v), p.Law.X.Chain(k)[i]
	for _, j := range batch {
		d += Terms / float64(len(batch)) * (p.TermField(j, i, v) - p.TermField(j, i, cur))
	}
	return d
}

// terms is a problem as a sum ψ_j(x) = U(x)/Terms + Σ_i TermField(j, i, x_i).
type terms struct {
	tempered
	p *Problem
}

var _ energies.Stochastic = terms{}

func (e terms) Terms() int { return Terms }

func (e terms) EstimateGrad(ctx context.Context, u []float64, g []float32, x energies.Batch, batch [][]int32) error {
	if err := e.LogDensityGrad(ctx, u, g, x); err != nil {
		return err
	}
	d, s := x.Space.Sites, x.Space.Values
	for c := range u {
		share := Terms / float64(len(batch[c]))
		for _, j := range batch[c] {
			for i, cur := range x.Chain(c) {
				u[c] += share * e.p.TermField(int(j), i, cur)
				for v := range s {
					g[(c*d+i)*s+v] += float32(share * e.p.TermField(int(j), i, int32(v)))
				}
			}
		}
	}
	return nil
}
