package samplers

import (
	"math"
	"testing"
)

// TestSoftplusSum compares with one logarithm a term, over what the product alone would
// overflow on and at the ends of the range.
func TestSoftplusSum(t *testing.T) {
	s, want := newSoftplusSum(), 0.0
	for k := range 5000 {
		x := 40 * math.Sin(float64(k)*float64(k))
		if k%3 == 0 {
			x /= 1000 // factors near 2
		}
		if e := s.add(x); math.Abs(leaves(x, e)/(1+e)-1/(1+math.Exp(-x))) > 1e-15 {
			t.Errorf("a site with log odds %g leaves with probability %g", x, leaves(x, e)/(1+e))
		}
		want += max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}
	if got := s.value(); math.Abs(got-want) > 1e-11*want {
		t.Errorf("sum %.17g, want %.17g", got, want)
	}
	for x, want := range map[float64]float64{math.Inf(-1): 0, -1e300: 0, 0: math.Ln2, 1e300: 1e300, math.Inf(1): math.Inf(1)} {
		s := newSoftplusSum()
		s.add(x)
		if got := s.value(); got != want {
			t.Errorf("log(1+e^%g) is %g, want %g", x, got, want)
		}
	}
}
