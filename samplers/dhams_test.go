package samplers

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// TestSkewDetailedBalance: between draws of π(x)·N(u), a move of DHAMS from a to b is as
// frequent as one from b to a with both momenta reversed, and not as frequent as one from b
// to a: the kernel is irreversible. The momentum is not refreshed, as refreshing is reversible.
func TestSkewDetailedBalance(t *testing.T) {
	const chains = 40_000
	e := ring{&energies.Space{Sites: 3, Values: 2, Kind: energies.Binary}, 0.3}
	k, err := NewDHAMS(e, DHAMSOptions{StepSize: 0.8})
	if err != nil {
		t.Fatal(err)
	}
	k.keep = 1
	s := &State{Point: Point{X: energies.NewBatch(e.space, chains)}, Seed: 6}
	all := energies.NewBatch(e.space, 8)
	for j := range all.Codes {
		all.Codes[j] = int32(j / 3 >> (j % 3) & 1)
	}
	u, weights := make([]float64, 8), make([]float64, 8)
	if err := e.LogDensity(context.Background(), u, all); err != nil {
		t.Fatal(err)
	}
	for j := range weights {
		weights[j] = math.Exp(u[j])
	}
	var r rng.Stream
	r.Reset(5, 0, 0, 0)
	for c := range chains {
		copy(s.X.Chain(c), all.Chain(r.Categorical(weights)))
		s.ChainIDs = append(s.ChainIDs, int64(c))
	}
	if err := k.Init(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	// A cell is a state and the signs of two momenta; the last bit flips with both.
	cell := func(c int) int {
		x, p, at := s.X.Chain(c), s.Var(MomentumVar)[c*3:], 0
		for i, v := range x {
			at |= int(v) << i
		}
		for i := range 2 {
			if p[i] > 0 {
				at |= 8 << i
			}
		}
		return at
	}
	const cells, flip = 32, 8 | 16
	from := make([]int, chains)
	for c := range from {
		from[c] = cell(c)
	}
	var info Info
	if err := k.Step(context.Background(), s, &info); err != nil {
		t.Fatal(err)
	}
	var flow [cells][cells]float64
	for c := range from {
		flow[from[c]][cell(c)]++
	}
	skew, plain, n := 0.0, 0.0, 0.0
	for a := range cells {
		for b := range cells {
			if back := flow[b^flip][a^flip]; flow[a][b]+back > 10 && (a != b^flip) {
				skew += (flow[a][b] - back) * (flow[a][b] - back) / (flow[a][b] + back) / 2
				n += 0.5
			}
			if back := flow[b][a]; flow[a][b]+back > 10 && a != b {
				plain += (flow[a][b] - back) * (flow[a][b] - back) / (flow[a][b] + back) / 2
			}
		}
	}
	t.Logf("%v pairs: χ² of skew detailed balance %.1f, of detailed balance %.1f", n, skew, plain)
	if z := (skew - n) / math.Sqrt(2*n); math.Abs(z) > 4 {
		t.Errorf("χ² %.1f of %v pairs: skew detailed balance fails", skew, n)
	}
	if plain < 10*n {
		t.Errorf("χ² %.1f of detailed balance: the kernel looks reversible", plain)
	}
}

// TestLinearEnergyRejectsNothing: for U linear in the state, DHAMS and AVG accept all.
func TestLinearEnergyRejectsNothing(t *testing.T) {
	for _, kind := range []energies.Kind{energies.Binary, energies.Categorical, energies.Ordinal} {
		values := 4
		if kind == energies.Binary {
			values = 2
		}
		e := newSiteFields(&energies.Space{Sites: 6, Values: values, Kind: kind}, 3)
		for _, name := range []string{"avg", "dhams"} {
			r, err := Run(context.Background(), Config{Kernel: kernel(t, name, e, nil), Chains: 4, Steps: 50})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range r.Acceptance {
				if math.Abs(a-1) > 1e-6 {
					t.Errorf("%s, %s: acceptance %v", name, kind, a)
				}
			}
		}
	}
}
