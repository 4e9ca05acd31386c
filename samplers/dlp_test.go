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
		s.add(x)
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

// TestExpMinus compares with math.Exp, as a term of 1 + e^-y.
func TestExpMinus(t *testing.T) {
	for k := range 200_000 {
		y := 45 * float64(k) / 200_000
		if got, want := expMinus(y), math.Exp(-y); math.Abs(got-want) > 4e-16*want && want > 0x1p-53 || got > 0x1p-53 && want < 0x1p-53 {
			t.Fatalf("e^-%g is %g, want %g", y, got, want)
		}
	}
	if got := expMinus(math.Inf(1)); got != 0 {
		t.Errorf("e^-Inf is %g", got)
	}
	if got := expMinus(math.NaN()); got == got {
		t.Errorf("e^NaN is %g", got)
	}
}

// TestDrawSigmoid: comparisons with the table decide as the formula does, at the ends of bins
// and of its range and at uniform numbers next to the logistic function.
func TestDrawSigmoid(t *testing.T) {
	for k := range 40_000 {
		x := float64(k-20_000) / 1000
		if k%3 == 0 {
			x = math.Round(x*sigmoidBins) / sigmoidBins
		}
		p := 1 / (1 + math.Exp(-x))
		for _, u := range []float64{p - 1e-3, p - 1e-15, p, p + 1e-15, p + 1e-3, 0.5, 1e-9, 1 - 1e-9} {
			if got := drawSigmoid(u, x); got == 1 != (u < p) {
				t.Fatalf("%v below the logistic function of %v, %v: %v", u, x, p, got)
			}
		}
	}
	if drawSigmoid(0.5, math.Inf(-1)) == 1 || drawSigmoid(0.5, math.Inf(1)) == 0 || drawSigmoid(0.5, math.NaN()) == 1 {
		t.Error("wrong at infinity")
	}
}
