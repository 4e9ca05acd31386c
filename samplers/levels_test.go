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
