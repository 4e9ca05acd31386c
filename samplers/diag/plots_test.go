package diag

import (
	"math"
	"slices"
	"testing"
)

func TestAutocorrelation(t *testing.T) {
	// 1, 2, 3, 4 around 2.5: squares 5; products at lag 1: 1.25, at lag 2: -1.5, at lag 3: -2.25.
	want := []float64{1, 0.25, -0.3, -0.45}
	got := Autocorrelation([]float64{1, 2, 3, 4}, 10)
	if len(got) != 4 {
		t.Fatalf("%d lags", len(got))
	}
	for k := range want {
		if math.Abs(got[k]-want[k]) > 1e-12 {
			t.Errorf("lag %d: %g, want %g", k, got[k], want[k])
		}
	}
	if c := Autocorrelation([]float64{2, 2, 2}, 1); !math.IsNaN(c[1]) || c[0] != 1 {
		t.Errorf("a constant chain: %v", c)
	}
	if c := Autocorrelation(nil, 5); c != nil {
		t.Errorf("an empty chain: %v", c)
	}
}

func TestRankCounts(t *testing.T) {
	got := RankCounts([][]float64{{1, 2, 3, 4}, {5, 6, 7, 8}}, 4)
	if !slices.Equal(got[0], []int{2, 2, 0, 0}) || !slices.Equal(got[1], []int{0, 0, 2, 2}) {
		t.Errorf("got %v", got)
	}
	// Equal draws share the middle of their ranks.
	got = RankCounts([][]float64{{1, 1, 9}, {1, 1, 0}}, 3)
	if !slices.Equal(got[0], []int{0, 2, 1}) || !slices.Equal(got[1], []int{1, 2, 0}) {
		t.Errorf("with ties: %v", got)
	}
	total := 0
	for _, n := range RankCounts([][]float64{{math.NaN(), 1}, {2, math.NaN()}}, 2)[0] {
		total += n
	}
	if total != 2 {
		t.Errorf("%d draws counted of a chain of 2", total)
	}
}
