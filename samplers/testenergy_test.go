package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// siteFields is U(x) = Σ_i h[i,x_i], whose evaluation costs next to nothing: for
// tests of kernels on wide rows, of allocations and of time. Its law is a
// product over sites.
type siteFields struct {
	space *energies.Space
	h     []float32 // [site, value]
	p     []float32 // softmax(½h), [site, value]
}

var (
	_ energies.Differentiable = (*siteFields)(nil)
	_ energies.Tilter         = (*siteFields)(nil)
)

func newSiteFields(sp *energies.Space, scale float64) *siteFields {
	var r rng.Stream
	r.Reset(1, int64(sp.Sites), int64(sp.Values), 0)
	f := &siteFields{space: sp, h: make([]float32, sp.Sites*sp.Values), p: make([]float32, sp.Sites*sp.Values)}
	for i := range sp.Sites {
		row, sum := f.h[i*sp.Values:(i+1)*sp.Values], 0.0
		for v := range row {
			row[v] = float32(scale * (r.Float64() - 0.5))
			if sp.Allows(i, int32(v)) {
				sum += math.Exp(float64(row[v]) / 2)
			}
		}
		for v := range row {
			if sp.Allows(i, int32(v)) {
				f.p[i*sp.Values+v] = float32(math.Exp(float64(row[v])/2) / sum)
			}
		}
	}
	return f
}

func (f *siteFields) Space() *energies.Space { return f.space }

func (f *siteFields) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = 0
		for i, v := range x.Chain(c) {
			u[c] += float64(f.h[i*f.space.Values+int(v)])
		}
	}
	return nil
}

func (f *siteFields) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	for c := range u {
		copy(g[c*len(f.h):], f.h)
	}
	return f.LogDensity(ctx, u, x)
}

func (f *siteFields) LogDensityTilt(ctx context.Context, u []float64, p []float32, x energies.Batch) error {
	for c := range u {
		copy(p[c*len(f.p):], f.p)
	}
	return f.LogDensity(ctx, u, x)
}

// dense hides the tilt of an energy.
type dense struct{ energies.Differentiable }
