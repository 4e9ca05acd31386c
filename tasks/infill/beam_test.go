package infill

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// TestBeam: of two blanks the estimates of a beam are the terms of U. Of four, fillings with the same
// second and third word have the same first word: that of the best partial filling with these words.
func TestBeam(t *testing.T) {
	m, ctx := load(t), context.Background()
	run := func(p *Problem, width int, order []int) []trial {
		t.Helper()
		list, err := p.newSearch(SearchOptions{}).beam(ctx, "", width, p.Masked(), order)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	sum := func(x []float64) (total float64) {
		for _, v := range x {
			total += v
		}
		return total
	}
	p, err := m.Text("he [MASK] [MASK] .", TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		x := energies.Batch{Space: p.Energy.Space()}
		list := run(p, 30, order)
		for _, y := range list {
			x.Codes = append(x.Codes, y.codes...)
		}
		u := make([]float64, x.Chains())
		if err := p.Energy.LogDensity(ctx, u, x); err != nil {
			t.Fatal(err)
		}
		for c, y := range list {
			if got := sum(y.expect); math.Abs(got-u[c]) > 1e-4 {
				t.Errorf("order %v: %v is expected to have %v, U is %v", order, y.codes, got, u[c])
			}
		}
		if len(list) != 30 || !slices.IsSortedFunc(list, func(a, b trial) int { return cmp.Compare(sum(b.expect), sum(a.expect)) }) {
			t.Errorf("order %v: %d fillings, the best not first", order, len(list))
		}
	}
	if p, err = m.Text("the [MASK] [MASK] [MASK] [MASK]", TextOptions{}); err != nil {
		t.Fatal(err)
	}
	words := map[[2]int32]int32{}
	for _, y := range run(p, 30, indices(4)) {
		key := [2]int32{y.codes[1], y.codes[2]}
		if w, ok := words[key]; ok && w != y.codes[0] {
			t.Errorf("two first words, %d and %d, before %v", w, y.codes[0], key)
		}
		words[key] = y.codes[0]
	}
	if len(words) < 3 {
		t.Errorf("%d pairs of words among 30 fillings", len(words))
	}
}
