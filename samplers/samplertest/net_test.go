package samplertest

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// net is a network with one hidden layer, the simplest energy similar to a neural one: U(z) = Σ_k a_k
// tanh(b_k + Σ_{i,v} w_k[i,v] z[i,v]) for real z. First-order estimates are inexact even for a change
// of one site.
type net struct {
	space   *energies.Space
	a, b, w []float64 // [unit], [unit], [unit, site, value]
}

const netUnits = 5

var _ energies.Differentiable = (*net)(nil)

func newNet(sp *energies.Space) *net {
	return &net{sp, normals(4, netUnits, 1.5), normals(5, netUnits, 0.5), normals(6, netUnits*sp.Sites*sp.Values, 0.8)}
}

func (n *net) Space() *energies.Space { return n.space }

func (n *net) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = 0
		for k := range netUnits {
			u[c] += n.a[k] * math.Tanh(n.input(k, x.Chain(c)))
		}
	}
	return ctx.Err()
}

func (n *net) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	ds := n.space.Sites * n.space.Values
	slope := make([]float64, netUnits)
	for c := range u {
		u[c] = 0
		for k := range netUnits {
			h := math.Tanh(n.input(k, x.Chain(c)))
			u[c] += n.a[k] * h
			slope[k] = n.a[k] * (1 - h*h)
		}
		for j := range ds {
			sum := 0.0
			for k := range netUnits {
				sum += slope[k] * n.w[k*ds+j]
			}
			g[c*ds+j] = float32(sum)
		}
	}
	return ctx.Err()
}

func (n *net) input(k int, x []int32) float64 {
	s, t := n.space.Values, n.b[k]
	for i, v := range x {
		t += n.w[(k*len(x)+i)*s+int(v)]
	}
	return t
}
