package samplers

import (
	"math"
	"testing"
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

// TestDrawProbabilitiesIndependent counts pairs of neighbouring sites that both get code 1, at a probability
// so small that the lower half of the 16 bits of a site decides: sites that share bits would be dependent.
func TestDrawProbabilitiesIndependent(t *testing.T) {
	const rounds, p = 3_000_000, 1.0 / 512
	x, sites, both := make([]int32, 4), []int32{0, 1, 2, 3}, 0
	var w Worker
	w.Reset(1, 0, 0, UseProposal)
	for range rounds {
		if !drawProbabilities(x, sites, []float32{p, p, p, p}, &w) {
			t.Fatal("a finite probability was refused")
		}
		both += int(x[0]&x[1] + x[1]&x[2] + x[2]&x[3])
	}
	want := 3 * rounds * p * p
	if z := (float64(both) - want) / math.Sqrt(want); math.Abs(z) > 4.5 {
		t.Errorf("%d pairs of ones, %.1f expected: z = %.1f", both, want, z)
	}
}
