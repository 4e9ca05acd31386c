package main

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// TestSampleLaw compares the draws of every exact sampler, made by the command, with an
// enumerated law. Chains are independent, so the standard error of a state's frequency
// comes from its spread between chains.
func TestSampleLaw(t *testing.T) {
	for _, c := range []struct {
		kind, space   string
		n, values     int
		number        func(code int) []float64
		chains, steps int
	}{
		{"pair", "spin:4", 4, 2, func(v int) []float64 { return []float64{float64(2*v - 1)} }, 120, 400},
		{"hot", "categorical:2x3", 2, 3, func(v int) []float64 { h := make([]float64, 3); h[v] = 1; return h }, 120, 400},
		{"pair", "ordinal:2:-1..2", 2, 4, func(v int) []float64 { return []float64{float64(v - 1)} }, 120, 400},
		{"codes", "categorical:3x3", 3, 3, func(v int) []float64 { return []float64{[]float64{-1, 0.5, 1.25}[v]} }, 120, 400},
	} {
		dir := t.TempDir()
		model := filepath.Join(dir, "m.onnx")
		if err := writeEnergy(c.kind, int64(c.n), model); err != nil {
			t.Fatal(err)
		}
		law := enumerate(c.n, c.values, c.number)
		for _, name := range samplers.Names() {
			reg, err := samplers.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if !reg.Exact || reg.Needs == energies.ModelConditional {
				continue
			}
			t.Run(c.space+"/"+name, func(t *testing.T) {
				run := filepath.Join(dir, name)
				cmd := program(t, "sample", model, "--space", c.space, "--sampler", name, "--seed", "3", "--chains", strconv.Itoa(c.chains),
					"--warmup", "100", "--steps", strconv.Itoa(c.steps), "--write", "none", "--out", run)
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				compare(t, run, c.values, law)
			})
		}
	}
}

// enumerate returns the law exp(U)/Z of the pair energy, by the index of a state with
// the first site counting most.
func enumerate(n, values int, number func(int) []float64) []float64 {
	long := n * len(number(0))
	w, b := weights(int64(long))
	states := int(math.Pow(float64(values), float64(n)))
	law, total := make([]float64, states), 0.0
	for k := range law {
		var z []float64
		for i := range n {
			z = append(z, number(k/int(math.Pow(float64(values), float64(n-1-i)))%values)...)
		}
		u := 0.0
		for i, a := range z {
			u += a * float64(b[i])
			for j, d := range z {
				u += a * float64(w[j*long+i]) * d
			}
		}
		law[k] = math.Exp(u)
		total += law[k]
	}
	for k := range law {
		law[k] /= total
	}
	return law
}

// compare checks the frequency of every state, in standard errors.
func compare(t *testing.T, run string, values int, law []float64) {
	t.Helper()
	r, err := store.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	chains := r.Chains()
	freq := make([][]float64, chains)
	for c := range freq {
		freq[c] = make([]float64, len(law))
		for x, err := range r.States(store.Sampling, c) {
			if err != nil {
				t.Fatal(err)
			}
			k := 0
			for _, v := range x {
				code := int(v) - h.Space.Low
				if h.Space.Kind == "spin" {
					code = int(v+1) / 2
				}
				k = k*values + code
			}
			freq[c][k] += 1 / float64(r.Draws(store.Sampling))
		}
	}
	worst := 0.0
	for k, p := range law {
		mean, square := 0.0, 0.0
		for _, f := range freq {
			mean += f[k] / float64(chains)
		}
		for _, f := range freq {
			square += (f[k] - mean) * (f[k] - mean) / float64(chains-1)
		}
		// A state that hardly any chain met has no spread to go by.
		se := math.Sqrt(max(square, p*(1-p)/float64(r.Draws(store.Sampling))) / float64(chains))
		worst = max(worst, math.Abs(mean-p)/se)
		if math.Abs(mean-p) > 4.5*se {
			t.Errorf("state %d has frequency %.5f, the law says %.5f, standard error %.5f", k, mean, p, se)
		}
	}
	t.Logf("worst deviation of %d states: %.2f standard errors", len(law), worst)
}
