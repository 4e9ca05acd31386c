package search

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// allStates calls f with every state of bumpy.
func (e *bumpy) allStates(f func(x []int32)) {
	list := e.space.AllowedAt(0)
	n := len(list)
	for k := range n * n * n * n {
		f([]int32{list[k%n], list[k/n%n], list[k/n/n%n], list[k/n/n/n]})
	}
}

// sweep runs chains of Sweeps with wide lists of all values or of the largest gradients.
func sweep(t *testing.T, e energies.Energy, all bool, steps int, ids []int64, from *samplers.Snapshot) *samplers.State {
	t.Helper()
	k, err := NewSweeps(e, Options{Words: 5, TopK: 4})
	if err != nil {
		t.Fatal(err)
	}
	k.all = all
	r, err := samplers.Run(t.Context(), samplers.Config{Kernel: k, ChainIDs: ids, Steps: steps, Seed: 5, Resume: from})
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

var sixChains = []int64{0, 1, 2, 3, 4, 5}

// TestSweepsFindTheMaximum enumerates an energy with many local maxima: every chain finds the global one,
// which most first climbs miss.
func TestSweepsFindTheMaximum(t *testing.T) {
	e := newBumpy()
	best := math.Inf(-1)
	e.allStates(func(x []int32) { best = max(best, e.value(x)) })
	found := func(s *samplers.State) (n int) {
		for _, u := range s.Var(scoreVar) {
			if math.Abs(u-best) < 1e-9 {
				n++
			}
		}
		return n
	}
	for _, all := range []bool{true, false} {
		s := sweep(t, e, all, 400, sixChains, nil)
		if n := found(s); n != len(sixChains) {
			t.Errorf("wide lists of all values %v: %d of %d chains find the maximum %.4f: %v", all, n, len(sixChains), best, s.Var(scoreVar))
		}
	}
	once := sweep(t, e, true, 20, sixChains, nil)
	if n := found(once); n == len(sixChains) {
		t.Error("one climb finds the maximum: this test shows nothing")
	}
}

// TestSweepsClimb: where the first climb ends, no value at any site, no move and no swap is better.
func TestSweepsClimb(t *testing.T) {
	e := newBumpy()
	k, err := NewSweeps(e, Options{Words: 3})
	if err != nil {
		t.Fatal(err)
	}
	loop, err := samplers.NewLoop(t.Context(), samplers.Config{Kernel: k, Chains: 60, Steps: 100, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	ended := make([]bool, 60)
	for slices.Contains(ended, false) && !loop.Done() {
		if err := loop.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := loop.State()
		for c, done := range ended {
			if done || s.Var(stageVar)[c] != startStage {
				continue
			}
			ended[c] = true
			at, u := s.X.Chain(c), s.U[c]
			e.allStates(func(x []int32) {
				changed := 0
				for i := range x {
					if x[i] != at[i] {
						changed++
					}
				}
				if changed == 1 && e.value(x) > u+tolerance {
					t.Errorf("chain %d ends its climb at %v (%.4f), and %v has %.4f", c, at, u, x, e.value(x))
				}
			})
			for i := range at {
				for j := range at {
					swapped := slices.Clone(at)
					swapped[i], swapped[j] = swapped[j], swapped[i]
					moved := slices.Insert(slices.Delete(slices.Clone(at), i, i+1), j, at[i])
					if u < e.value(swapped)-tolerance || u < e.value(moved)-tolerance {
						t.Errorf("chain %d ends its climb at %v (%.4f): %v has %.4f, %v has %.4f", c, at, u, swapped, e.value(swapped), moved, e.value(moved))
					}
				}
			}
		}
	}
	if slices.Contains(ended, false) {
		t.Errorf("some chains have not ended their first climb: %v", ended)
	}
}

// TestSweepsResume: what a chain does depends on no other chain, and a run that goes on from a snapshot is
// the run that was never stopped, its counts of evaluations included.
func TestSweepsResume(t *testing.T) {
	for _, all := range []bool{true, false} {
		whole := sweep(t, newBumpy(), all, 120, sixChains, nil)
		for at := range 40 {
			early := sweep(t, newBumpy(), all, at+1, sixChains, nil).Snapshot()
			resumed := sweep(t, newBumpy(), all, 120, sixChains, &early)
			for c := range sixChains {
				if !slices.Equal(resumed.X.Chain(c), whole.X.Chain(c)) || resumed.U[c] != whole.U[c] {
					t.Fatalf("resumed after step %d: chain %d is at %v, want %v", at+1, c, resumed.X.Chain(c), whole.X.Chain(c))
				}
			}
			for k, v := range whole.Vars {
				if !slices.Equal(resumed.Vars[k].Data, v.Data) {
					t.Fatalf("resumed after step %d: %s is %v, want %v", at+1, v.Name, resumed.Vars[k].Data, v.Data)
				}
			}
		}
		alone := sweep(t, newBumpy(), all, 120, sixChains[3:4], nil)
		if !slices.Equal(alone.X.Chain(0), whole.X.Chain(3)) {
			t.Errorf("alone: chain 3 is at %v, want %v", alone.X.Chain(0), whole.X.Chain(3))
		}
	}
}

// noisy is bumpy as another processor might compute it: U and gradients differ in their last bits.
type noisy struct {
	*bumpy
	salt uint64
}

// bits returns a number of [-1, 1] that depends on a state and the salt.
func (e noisy) bits(x []int32, k int) float64 {
	h := e.salt*0x9e3779b97f4a7c15 + uint64(k)
	for _, v := range x {
		h = (h ^ uint64(v)) * 0x100000001b3
		h ^= h >> 29
	}
	return float64(h>>11)/(1<<52) - 1
}

func (e noisy) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	err := e.bumpy.LogDensity(ctx, u, x)
	for c := range u {
		u[c] += 2e-7 * e.bits(x.Chain(c), -1)
	}
	return err
}

func (e noisy) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	err := e.bumpy.LogDensityGrad(ctx, u, g, x)
	for k := range g {
		g[k] *= float32(1 + 1e-6*e.bits(x.Codes, k))
	}
	return err
}

// TestSweepsLastBit: rounding of another kind changes no step. Where all states are alike but for rounding, no
// chain moves.
func TestSweepsLastBit(t *testing.T) {
	for _, all := range []bool{true, false} {
		want := sweep(t, newBumpy(), all, 200, sixChains, nil)
		for salt := range uint64(20) {
			got := sweep(t, noisy{newBumpy(), salt + 1}, all, 200, sixChains, nil)
			if !slices.Equal(got.X.Codes, want.X.Codes) || !slices.Equal(got.Var(bestVar), want.Var(bestVar)) {
				t.Errorf("rounding %d: chains are at %v, best %v; want %v, best %v", salt, got.X.Codes, got.Var(bestVar), want.X.Codes, want.Var(bestVar))
			}
		}
	}
	flat := sweep(t, noisy{&bumpy{space: newBumpy().space, flat: true}, 1}, true, 5, sixChains, nil)
	first := sweep(t, noisy{&bumpy{space: newBumpy().space, flat: true}, 1}, true, 1, sixChains, nil)
	if !slices.Equal(flat.X.Codes, first.X.Codes) {
		t.Errorf("where all states are alike, chains move from %v to %v", first.X.Codes, flat.X.Codes)
	}
}
