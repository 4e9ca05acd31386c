package logistic

import (
	"math"
	"testing"
)

// TestSum compares with one logarithm a term, over what the product alone would
// overflow on and at the ends of the range.
func TestSum(t *testing.T) {
	s, want := NewSum(), 0.0
	for k := range 5000 {
		x := 40 * math.Sin(float64(k)*float64(k))
		if k%3 == 0 {
			x /= 1000 // factors near 2
		}
		s.Add(x)
		want += max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}
	if got := s.Value(); math.Abs(got-want) > 1e-11*want {
		t.Errorf("sum %.17g, want %.17g", got, want)
	}
	for x, want := range map[float64]float64{math.Inf(-1): 0, -1e300: 0, 0: math.Ln2, 1e300: 1e300, math.Inf(1): math.Inf(1)} {
		s := NewSum()
		s.Add(x)
		if got := s.Value(); got != want {
			t.Errorf("log(1+e^%g) is %g, want %g", x, got, want)
		}
	}
}

// TestSigmoids compares with the formulas, over both signs, large numbers and NaN.
func TestSigmoids(t *testing.T) {
	const shift = 0.75
	var x []float64
	want := 0.0
	for k := range 5000 {
		x = append(x, 45*math.Sin(float64(k)*float64(k)))
		want += max(x[k]-shift, 0) + math.Log1p(math.Exp(-math.Abs(x[k]-shift)))
	}
	p := make([]float64, len(x))
	if got := Sigmoids(p, x, shift); math.Abs(got-want) > 1e-12*want {
		t.Errorf("sum %.17g, want %.17g", got, want)
	}
	for k, t1 := range x {
		if want := 1 / (1 + math.Exp(shift-t1)); math.Abs(p[k]-want) > 3e-16 {
			t.Fatalf("logistic function of %g: %g, want %g", t1-shift, p[k], want)
		}
	}
	narrow := []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	if got := Sigmoids(narrow, narrow, 0); got == got || narrow[0] != 0.5 || narrow[1] != 1 || narrow[2] != 0 || narrow[3] == narrow[3] {
		t.Errorf("sum %g, %v", got, narrow)
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

// TestDraw: comparisons with the table decide as the formula does, at the ends of bins
// and of its range and at uniform numbers next to the logistic function.
func TestDraw(t *testing.T) {
	for k := range 40_000 {
		x := float64(k-20_000) / 1000
		if k%3 == 0 {
			x = math.Round(x*sigmoidBins) / sigmoidBins
		}
		p := 1 / (1 + math.Exp(-x))
		for _, u := range []float64{p - 1e-3, p - 1e-15, p, p + 1e-15, p + 1e-3, 0.5, 1e-9, 1 - 1e-9} {
			if got := Draw(u, x); got == 1 != (u < p) {
				t.Fatalf("%v below the logistic function of %v, %v: %v", u, x, p, got)
			}
		}
	}
	if Draw(0.5, math.Inf(-1)) == 1 || Draw(0.5, math.Inf(1)) == 0 || Draw(0.5, math.NaN()) == 1 {
		t.Error("wrong at infinity")
	}
}

// TestDrawBits: what 16 bits decide is what Draw gives for every v, and they decide nearly always.
func TestDrawBits(t *testing.T) {
	open, all := 0, 0
	for k := range 400 {
		x := float64(k-200) / 11
		for r := range uint32(1 << 16) {
			if r%257 != 0 && r > 4 && r < 1<<16-4 {
				continue
			}
			got, decided := DrawBits(r, x)
			if all++; !decided {
				open++
				continue
			}
			for _, v := range []float64{1e-9, 0.5, 1 - 1e-9} {
				if want := Draw((float64(r)+v)*0x1p-16, x); got != want {
					t.Fatalf("bits %#x at %g: %d, want %d", r, x, got, want)
				}
			}
		}
	}
	if share := float64(open) / float64(all); share > 0.15 {
		t.Errorf("a share of %.3f is not decided", share)
	}
}

// TestSumExp compares with the definition, in float64 after subtracting the greatest term, over scales at which all,
// some and one of the terms count, and finds what is not finite.
func TestSumExp(t *testing.T) {
	list := make([]float32, 1000)
	for k := range list {
		list[k] = float32(300 * math.Sin(float64(k)*float64(k)))
	}
	for _, scale := range []float64{0, 1e-3, 0.1, 1, 1e6} {
		const from = 12.5
		s, top, want := NewSumExp[float32](scale, from), math.Inf(-1), 0.0
		s.Add(list[:400])
		s.Add(list[400:])
		for _, x := range list {
			top = max(top, scale*(float64(x)-from))
		}
		for _, x := range list {
			want += math.Exp(scale*(float64(x)-from) - top)
		}
		want = math.Log(want) + top
		if got := s.Value(); math.Abs(got-want) > 1e-13*(1+math.Abs(want)) {
			t.Errorf("scale %g: %.17g, want %.17g", scale, got, want)
		}
	}
	empty := NewSumExp[float32](1, 0)
	if got := empty.Value(); !math.IsInf(got, -1) {
		t.Errorf("without terms: %g", got)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, at := range []int{-1, 0, 500, 999} {
			from, terms := 0.0, append([]float32(nil), list...)
			if at < 0 {
				from = bad
			} else {
				terms[at] = float32(bad)
			}
			s := NewSumExp[float32](1, from)
			s.Add(terms)
			if got := s.Value(); !math.IsNaN(got) && !math.IsInf(got, 1) {
				t.Errorf("%g at %d: %g", bad, at, got)
			}
		}
	}
}
