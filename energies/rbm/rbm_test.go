package rbm

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies/table"
)

// TestHiddenUnits: U of the RBM is the logarithm of exp(U) of its joint form summed over hidden units, and U of the
// joint form is bᵀx + cᵀh + hᵀWx.
func TestHiddenUnits(t *testing.T) {
	const sites, units = 4, 3
	weight, bias, hidden := make([]float64, sites*units), make([]float64, sites), make([]float64, units)
	for k := range weight {
		weight[k] = 2 * math.Sin(float64(3*k+1))
	}
	for i := range bias {
		bias[i] = math.Cos(float64(i))
	}
	for k := range hidden {
		hidden[k] = math.Sin(float64(2*k)) - 0.3
	}
	m, err := New(weight, bias, hidden)
	if err != nil {
		t.Fatal(err)
	}
	marginal, err := table.Enumerate(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	joint, err := table.Enumerate(context.Background(), m.Joint())
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]float64, marginal.Len())
	for state, u := range joint.U {
		s, want := joint.X.Chain(state), 0.0
		for i := range sites {
			want += bias[i] * float64(s[i])
		}
		for k := range units {
			want += hidden[k] * float64(s[sites+k])
			for i := range sites {
				want += weight[k*sites+i] * float64(s[i]*s[sites+k])
			}
		}
		if math.Abs(u-want) > 1e-12 {
			t.Errorf("joint state %v: U = %v, want %v", s, u, want)
		}
		sums[marginal.Find(s[:sites])] += math.Exp(want)
	}
	for state, u := range marginal.U {
		if want := math.Log(sums[state]); math.Abs(u-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("state %v: U = %v, summed over hidden units %v", marginal.X.Chain(state), u, want)
		}
	}
}
