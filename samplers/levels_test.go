package samplers

import (
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// TestThreshold: over all 16-bit numbers, with ties drawn by their probability, a threshold has the
// probability that it was made from.
func TestThreshold(t *testing.T) {
	var w Worker
	for _, p := range []float64{0, 1e-9, 0.25, 0.3, 1.0 / 3, 0.9999999, 1} {
		x := newThreshold(p)
		sum := 0.0
		for bits := range uint32(1 << 16) {
			if bits == x.high {
				sum += x.rest
			} else {
				sum += float64(x.draw(bits))
			}
		}
		if got := sum / (1 << 16); math.Abs(got-p) > 1e-16 {
			t.Errorf("probability %v, want %v", got, p)
		}
	}
	// A tie is decided by a further number.
	x, ones := newThreshold(0.3), 0
	w.Reset(1, 2, 3, 4)
	const n = 20_000
	for range n {
		ones += int(x.tie(&w))
	}
	if z := (float64(ones) - n*x.rest) / math.Sqrt(n*x.rest*(1-x.rest)); math.Abs(z) > 4 {
		t.Errorf("%d of %d ties, probability %v", ones, n, x.rest)
	}
}

// TestSitesShareNoBits counts pairs of neighbouring sites that both get code 1, at a probability so small that
// the lower half of the 16 bits of a site decides: sites that share bits would be dependent.
func TestSitesShareNoBits(t *testing.T) {
	const sites, rounds, p = 64, 200_000, 1.0 / 512
	odds := math.Log(p / (1 - p))
	var order []int32
	var lp, leave []float64
	var probability []float32
	for i := range sites {
		order, lp, leave, probability = append(order, int32(i)), append(lp, 0, odds), append(leave, odds), append(probability, p)
	}
	x := energies.NewBatch(&energies.Space{Sites: sites, Values: 2}, 1)
	s := &State{Point: Point{X: x, leave: leave, flips: make([]float64, sites), norms: make([]normaliser, 1), levels: make([]uint8, sites)}}
	s.Vars = []Var{{VarSpec{Name: StepSizeVar}, []float64{1}}}
	rare := newThreshold(p)
	levels := &levelLangevin{chains: []levelMoves{{alpha: 1, beta: 1, move: []levelMove{{threshold: rare}, {threshold: rare}}}}}
	for name, draw := range map[string]func(w *Worker, to []int32) bool{
		"drawProbabilities": func(w *Worker, to []int32) bool { return drawProbabilities(to, order, probability, w) },
		"drawOdds":          func(w *Worker, to []int32) bool { return drawOdds(to, order, lp, 1, w) },
		"drawPairs":         func(w *Worker, to []int32) bool { return !math.IsNaN(langevin{}.drawPairs(w, s, 0, to, 0)) },
		"levelLangevin":     func(w *Worker, to []int32) bool { return levels.Draw(w, s, 0, to) == 0 },
		"drawLevels": func(w *Worker, to []int32) bool {
			drawLevels(to, order, s.levels, []threshold{rare}, w)
			return true
		},
	} {
		var w Worker
		w.Reset(1, 0, 0, UseProposal)
		to, ones, both := make([]int32, sites), 0, 0
		for range rounds {
			if !draw(&w, to) {
				t.Fatalf("%s: a finite probability was refused", name)
			}
			before := int32(0)
			for _, v := range to {
				ones, both, before = ones+int(v), both+int(v&before), v
			}
		}
		for _, c := range []struct {
			what  string
			count int
			want  float64
		}{{"ones", ones, sites * rounds * p}, {"pairs of ones", both, (sites - 1) * rounds * p * p}} {
			if z := (float64(c.count) - c.want) / math.Sqrt(c.want); math.Abs(z) > 4.5 {
				t.Errorf("%s: %d %s, %.1f expected: z = %.1f", name, c.count, c.what, c.want, z)
			}
		}
	}
}
