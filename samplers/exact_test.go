package samplers

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// steep is a small U with a gradient that has nothing to do with it and is so
// steep that most of the tilt underflows: any deterministic gradient leaves an
// exact kernel exact.
type steep struct {
	space *energies.Space
	scale float64
}

var (
	_ energies.Differentiable = steep{}
	_ energies.Tilter         = steep{}
)

func (e steep) Space() *energies.Space { return e.space }

func (e steep) logDensity(x []int32) float64 {
	u := 0.0
	for i, v := range x {
		u += math.Sin(float64(1 + 3*i + 5*int(v)))
	}
	return u + 0.5*math.Cos(float64(x[0]+2*x[1]))
}

func (e steep) slope(x []int32, i int, v int32) float64 {
	return e.scale * math.Sin(float64(7+int(x[0])+2*int(x[1])+3*i+11*int(v)))
}

func (e steep) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = e.logDensity(x.Chain(c))
	}
	return nil
}

func (e steep) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	s := e.space.Values
	for r := range x.Codes {
		for v := range s {
			g[r*s+v] = float32(e.slope(x.Chain(r/2), r%2, int32(v)))
		}
	}
	return e.LogDensity(ctx, u, x)
}

func (e steep) LogDensityTilt(ctx context.Context, u []float64, p []float32, x energies.Batch) error {
	s := e.space.Values
	for r := range x.Codes {
		top, sum := math.Inf(-1), 0.0
		for v := range s {
			top = max(top, e.slope(x.Chain(r/2), r%2, int32(v))/2)
		}
		for v := range s {
			p[r*s+v] = float32(math.Exp(e.slope(x.Chain(r/2), r%2, int32(v))/2 - top))
			sum += float64(p[r*s+v])
		}
		for v := range s {
			p[r*s+v] /= float32(sum)
		}
	}
	return e.LogDensity(ctx, u, x)
}

// TestExactWhereTiltUnderflows starts from exact draws of a law on 25 states and
// asks that they remain so, although proposals are absurd and their reverse has
// often probability zero.
func TestExactWhereTiltUnderflows(t *testing.T) {
	const n, values = 2000, 5
	for _, name := range []string{"dmala", "gwg"} {
		for _, kind := range []energies.Kind{energies.Categorical, energies.Ordinal} {
			for _, scale := range []float64{20, 300, 2000} {
				for _, wrap := range []func(steep) energies.Energy{
					func(e steep) energies.Energy { return e },
					func(e steep) energies.Energy { return dense{e} },
				} {
					e := steep{&energies.Space{Sites: 2, Values: values, Kind: kind}, scale}
					k, err := New(name, wrap(e), nil)
					if err != nil {
						t.Fatal(err)
					}
					law := make([]float64, values*values)
					for j := range law {
						law[j] = math.Exp(e.logDensity([]int32{int32(j / values), int32(j % values)}))
					}
					var r rng.Stream
					r.Reset(4, 0, 0, 0)
					var start []int32
					for range n {
						j := r.Categorical(law)
						start = append(start, int32(j/values), int32(j%values))
					}
					result, err := Run(context.Background(), Config{Kernel: k, Init: start, Steps: 8, Seed: 8})
					if err != nil {
						t.Fatal(err)
					}
					if chi := chiSquared(result.State.X, law); chi > 61 { // 24 degrees of freedom: p = 5e-5
						t.Errorf("%s, %s, scale %v, %T: χ² = %v", name, kind, scale, wrap(e), chi)
					}
				}
			}
		}
	}
}

// chiSquared compares states of two sites with weights of the pairs.
func chiSquared(x energies.Batch, weights []float64) float64 {
	counts, sum, chi := make([]float64, len(weights)), 0.0, 0.0
	for c := range x.Chains() {
		counts[int(x.Chain(c)[0])*x.Space.Values+int(x.Chain(c)[1])]++
	}
	for _, w := range weights {
		sum += w
	}
	for j, w := range weights {
		mean := w / sum * float64(x.Chains())
		chi += (counts[j] - mean) * (counts[j] - mean) / mean
	}
	return chi
}
