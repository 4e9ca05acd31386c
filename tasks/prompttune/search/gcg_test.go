package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// bumpy is an energy with many local maxima whose gradient is the linear part of U alone:
// U(x) = Σ_i a[i,x_i] + Σ_i b[x_i,x_{i+1}].
type bumpy struct {
	space *energies.Space
	flat  bool // U is 0 everywhere
	ties  bool // U is rounded to tenths
}

func (e *bumpy) Space() *energies.Space { return e.space }

func (e *bumpy) a(i int, v int32) float64 { return math.Sin(float64(7*i) + 3*float64(v)) }

func (e *bumpy) value(x []int32) float64 {
	u := 0.0
	if e.flat {
		return u
	}
	for i, v := range x {
		u += e.a(i, v)
		if i > 0 {
			u += 1.5 * math.Cos(float64(v)*2+float64(x[i-1])*5)
		}
	}
	if e.ties {
		u = math.Round(10*u) / 10
	}
	return u
}

func (e *bumpy) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = e.value(x.Chain(c))
	}
	return nil
}

func (e *bumpy) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	for r := range x.Codes {
		for v := range e.space.Values {
			g[r*e.space.Values+v] = float32(e.a(r%e.space.Sites, int32(v)))
		}
	}
	return e.LogDensity(ctx, u, x)
}

func newBumpy() *bumpy {
	list := []int32{0, 1, 2, 4, 5, 6, 8}
	return &bumpy{space: &energies.Space{Sites: 4, Values: 9, Allowed: [][]int32{list}}}
}

// TestGCGIsGreedy compares every step with all changes of one site to one of the top values,
// enumerated: with as many candidates a step takes the best of these if it is better.
func TestGCGIsGreedy(t *testing.T) {
	e := newBumpy()
	const topK = 5
	k, err := newGCG(e, gcgOptions{Candidates: 1000, TopK: topK})
	if err != nil {
		t.Fatal(err)
	}
	loop, err := samplers.NewLoop(t.Context(), samplers.Config{Kernel: k, Chains: 6, Steps: 8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for !loop.Done() {
		before := loop.State().X.Clone()
		evaluated := loop.State().Evaluations.Density
		if err := loop.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for c := range before.Chains() {
			want, top := slices.Clone(before.Chain(c)), e.value(before.Chain(c))
			for i, cur := range before.Chain(c) {
				list := slices.DeleteFunc(slices.Clone(e.space.AllowedAt(i)), func(v int32) bool { return v == cur })
				slices.SortFunc(list, func(v, w int32) int { return cmp.Compare(e.a(i, w), e.a(i, v)) })
				for _, v := range list[:topK] {
					x := slices.Clone(before.Chain(c))
					if x[i] = v; e.value(x) > top {
						want, top = x, e.value(x)
					}
				}
			}
			if got := loop.State().X.Chain(c); !slices.Equal(got, want) || loop.State().U[c] != top {
				t.Errorf("step %d: chain %d is at %v (U %.4f), want %v (%.4f)", loop.State().Step, c, got, loop.State().U[c], want, top)
			}
		}
		if n := loop.State().Evaluations.Density - evaluated; n != 6*4*topK {
			t.Errorf("step %d evaluates %d states, want %d", loop.State().Step, n, 6*4*topK)
		}
	}
}
