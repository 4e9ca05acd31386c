package ebm_test

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/ebm"
)

// Chains with different fixed halves draw the conditional laws that enumeration gives.
func TestClamp(t *testing.T) {
	m, space := small(t, "rbm", energies.Binary)
	e, err := neural.NewModel(m, neural.ModelOptions{Space: space})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, u := enumerated(t, e)
	free := make([]bool, space.Sites)
	for _, i := range []int{1, 4, 8} {
		free[i] = true
	}
	const a, b = 0, 1<<10 - 1 // states whose sites are all 0, and all 1
	fixed := append(append([]int32(nil), x.Chain(a)...), x.Chain(b)...)
	c, err := ebm.Clamp(e, free, fixed)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := samplers.New("dmala", c, samplers.Settings{"step-size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var draws samplers.Recorder
	const chains, steps = 40, 400
	if _, err := samplers.Run(context.Background(), samplers.Config{Kernel: kernel, Chains: chains, Warmup: 20, Steps: steps, Thin: 4, Seed: 1,
		Observers: []samplers.Observer{&draws}}); err != nil {
		t.Fatal(err)
	}
	for row, start := range []int{a, b} {
		var want, got [8]float64
		total := 0.0
		for k := range want {
			state := start
			for j, i := range []int{1, 4, 8} {
				state = state&^(1<<i) | (k >> j & 1 << i)
			}
			want[k] = math.Exp(u[state] - u[start])
			total += want[k]
		}
		n := 0.0
		for d := range draws.Draws() {
			for ch := row; ch < chains; ch += 2 {
				k := 0
				for j, v := range draws.At(d, ch) {
					k |= int(v) << j
				}
				got[k]++
				n++
			}
		}
		for k := range want {
			p := want[k] / total
			se := math.Sqrt(p * (1 - p) / (n / 4)) // draws are correlated: a quarter counts
			if math.Abs(got[k]/n-p) > 4.5*se {
				t.Errorf("row %d, state %d: frequency %.4f, conditional probability %.4f (standard error %.4f)", row, k, got[k]/n, p, se)
			}
		}
	}
	if _, err := ebm.Clamp(e, make([]bool, space.Sites), fixed); err == nil {
		t.Error("a space without free sites is accepted")
	}
}
