package neural

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/rbm"
	"github.com/gradhop/gradhop/onnx/ort"
)

// TestProducts: with products by the runtime, both forms of an RBM answer as they do in float64, and
// the answer for a chain does not depend on the other chains, to the bit.
func TestProducts(t *testing.T) {
	const d, h, chains = 301, 70, 23 // neither a multiple of a vector
	r := rand.New(rand.NewPCG(3, 4))
	normal := func(n int) []float64 {
		x := make([]float64, n)
		for k := range x {
			x[k] = 0.5 * r.NormFloat64()
		}
		return x
	}
	exact, err := rbm.New(normal(d*h), normal(d), normal(h))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProducts(t.Context(), exact, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	fast := exact.With(p)
	for _, pair := range [][2]energies.Differentiable{{exact, fast}, {exact.Joint(), fast.Joint()}} {
		x := energies.NewBatch(pair[0].Space(), chains)
		for k := range x.Codes {
			x.Codes[k] = int32(r.IntN(2))
		}
		want, got := answers(t, pair[0], x), answers(t, pair[1], x)
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-6*math.Abs(want[k])+1e-5 {
				t.Fatalf("%T: number %d is %v with the runtime, %v without", pair[0], k, got[k], want[k])
			}
		}
		each := len(got) / chains
		for lo := range chains {
			for _, hi := range []int{lo + 1, min(lo+7, chains)} {
				part := answers(t, pair[1], x.Slice(lo, hi))
				for c := range hi - lo {
					for k := range each {
						if part[c*each+k] != got[(lo+c)*each+k] {
							t.Fatalf("%T: chain %d, number %d: %v among chains %d to %d, %v among all", pair[0], lo+c, k, part[c*each+k], lo, hi-1, got[(lo+c)*each+k])
						}
					}
				}
			}
		}
	}
}

// answers returns U, the gradient and the conditionals of both layers, [chain, number].
func answers(t *testing.T, e energies.Differentiable, x energies.Batch) []float64 {
	t.Helper()
	n, d := x.Chains(), x.Space.Sites
	u, g := make([]float64, n), make([]float32, 2*n*d)
	if err := e.LogDensityGrad(t.Context(), u, g, x); err != nil {
		t.Fatal(err)
	}
	alone := make([]float64, n)
	if err := e.LogDensity(context.Background(), alone, x); err != nil {
		t.Fatal(err)
	}
	oracle := energies.AsOracle(e)
	var blocks [][]float64
	for _, sites := range oracle.Capabilities().Colours {
		m := n * len(sites)
		q := energies.Query{Want: energies.Block, X: x, Sites: sites, LogP: make([]float64, 2*m), Odds: make([]float32, m), Probability: make([]float32, m)}
		for c := range n {
			q.Beta = append(q.Beta, float64(1+x.Chain(c)[0])) // 1 or 2
		}
		if err := oracle.Answer(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		block := make([]float64, 0, 2*m)
		for k := range m {
			odds, p := q.LogP[2*k+1]-q.LogP[2*k], float64(q.Probability[k])
			if oracle.Capabilities().Logistic {
				odds = float64(q.Odds[k])
			} else {
				p = 1 / (1 + math.Exp(-q.Beta[k/len(sites)]*odds))
			}
			block = append(block, odds, p)
		}
		blocks = append(blocks, block)
	}
	var all []float64
	for c := range n {
		if alone[c] != u[c] {
			t.Errorf("U of chain %d is %v alone, %v with the gradient", c, alone[c], u[c])
		}
		all = append(all, u[c])
		for _, v := range g[2*c*d : 2*(c+1)*d] {
			all = append(all, float64(v))
		}
		for _, lp := range blocks {
			all = append(all, lp[c*len(lp)/n:(c+1)*len(lp)/n]...)
		}
	}
	return all
}
