package infill

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
)

// TestWordByWord: the probabilities of all fillings add up to one, Draw and LogQ agree on them, and fillings are
// drawn as often as they say.
func TestWordByWord(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		temperature float64
		words       TextOptions
	}{
		"":            {1, TextOptions{}},
		"temperature": {0.5, TextOptions{}},
		"no repeat":   {1, TextOptions{NoRepeat: true, Allow: []string{"cat", "the", "sat", "on", "."}}},
	} {
		m, err := tinyWith(t, mlm.Options{Temperature: c.temperature}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Text("the [MASK] [MASK] on", c.words)
		if err != nil {
			t.Fatal(err)
		}
		q, all := wordByWord{p}, energies.Batch{Space: p.Energy.Space()}
		for _, x := range enumerate(t, p) {
			if p.admits(x.codes, 0, x.codes[0]) && p.admits(x.codes, 1, x.codes[1]) {
				all.Codes = append(all.Codes, x.codes...)
			}
		}
		logQ, total := make([]float64, all.Chains()), 0.0
		if err := q.LogQ(ctx, all, logQ); err != nil {
			t.Fatal(err)
		}
		of := map[string]float64{}
		for k, l := range logQ {
			total += math.Exp(l)
			of[stateKey(all.Chain(k))] = l
		}
		if math.Abs(total-1) > 1e-6 {
			t.Errorf("%s: the probabilities of %d fillings add up to %v", name, len(logQ), total)
		}
		// Of a single blank they are those of the target, up to a constant.
		if p, err = m.Text("the cat [MASK] .", TextOptions{}); err != nil {
			t.Fatal(err)
		}
		one, constant := make([]float64, 1), math.NaN()
		for _, x := range enumerate(t, p) {
			if err := (wordByWord{p}).LogQ(ctx, energies.Batch{Space: p.Energy.Space(), Codes: x.codes}, one); err != nil {
				t.Fatal(err)
			}
			d := one[0] - x.u/c.temperature
			if !math.IsNaN(constant) && math.Abs(d-constant) > 1e-4 {
				t.Fatalf("%s: log q of %v is %v above its log-density, that of others %v", name, x.codes, d, constant)
			}
			constant = d
		}
		const n = 4000
		x, drawn, count := energies.NewBatch(all.Space, n), make([]float64, n), map[string]float64{}
		r := rand.New(rand.NewPCG(1, 2))
		if err := q.Draw(ctx, x, drawn, func(int) float64 { return r.Float64() }); err != nil {
			t.Fatal(err)
		}
		for k, l := range drawn {
			key := stateKey(x.Chain(k))
			count[key]++
			if want, ok := of[key]; !ok || math.Abs(l-want) > 1e-5 {
				t.Fatalf("%s: %v is drawn with log q %v; LogQ says %v", name, x.Chain(k), l, want)
			}
		}
		for key, l := range of {
			f, got := math.Exp(l), count[key]/n
			if se := math.Sqrt(f * (1 - f) / n); n*f > 20 && math.Abs(got-f) > 4.5*se {
				t.Errorf("%s: a filling of probability %v has the frequency %v (standard error %v)", name, f, got, se)
			}
		}
	}
}
