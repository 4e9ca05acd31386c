package energies

import (
	"context"
	"errors"
	"math"
	"testing"
)

// line is U = Σ_i slope·x_i, -Inf where code bad occurs.
type line struct {
	space Space
	slope float64
	bad   int32
}

func (l *line) Space() *Space { return &l.space }

func (l *line) LogDensity(_ context.Context, u []float64, x Batch) error {
	for c := range u {
		u[c] = 0
		for _, v := range x.Chain(c) {
			u[c] += l.slope * float64(v)
			if v == l.bad {
				u[c] = math.Inf(-1)
			}
		}
	}
	return nil
}

type sloped struct{ line }

func (l *sloped) LogDensityGrad(ctx context.Context, u []float64, g []float32, x Batch) error {
	for i := range g {
		g[i] = float32(l.slope) * float32(i%l.space.Values)
	}
	return l.LogDensity(ctx, u, x)
}

func TestSum(t *testing.T) {
	space := Space{Sites: 2, Values: 3}
	a := &sloped{line{space, 2, -1}}
	b := &sloped{line{Space{Sites: 2, Values: 3, Allowed: [][]int32{{0, 1}, {1, 2}}}, 0.5, -1}}
	e, err := NewSum(Term{1, a}, Term{-3, b})
	if err != nil {
		t.Fatal(err)
	}
	d, ok := e.(Differentiable)
	if !ok {
		t.Fatal("a sum of differentiable energies is not differentiable")
	}
	if e.Space().Allows(0, 2) || !e.Space().Allows(1, 2) || e.Space().Allows(1, 0) {
		t.Errorf("allowed: %v", e.Space().Allowed)
	}
	x := Batch{Space: e.Space(), Codes: []int32{0, 1, 1, 2}}
	u, g := make([]float64, 2), make([]float32, 12)
	if err := d.LogDensityGrad(context.Background(), u, g, x); err != nil {
		t.Fatal(err)
	}
	for c, want := range []float64{0.5, 1.5} { // (2 - 1.5)·Σx
		if math.Abs(u[c]-want) > 1e-12 {
			t.Errorf("U[%d] = %g, want %g", c, u[c], want)
		}
	}
	for i, v := range g {
		if want := 0.5 * float32(i%3); v != want {
			t.Errorf("gradient %d is %g, want %g", i, v, want)
		}
	}
	only := make([]float64, 2)
	if err := e.LogDensity(context.Background(), only, x); err != nil || only[0] != u[0] || only[1] != u[1] {
		t.Errorf("U alone is %v, with the gradient %v (%v)", only, u, err)
	}
}

// TestSumZero: a term's zero probability wins, also with a negative weight.
func TestSumZero(t *testing.T) {
	space := Space{Sites: 1, Values: 3}
	e, err := NewSum(Term{1, &line{space, 1, -1}}, Term{-1, &line{space, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.(Differentiable); ok {
		t.Error("a sum with a term that has no gradient claims one")
	}
	u := make([]float64, 2)
	if err := e.LogDensity(context.Background(), u, Batch{Space: e.Space(), Codes: []int32{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if u[0] != 0 || !math.IsInf(u[1], -1) {
		t.Errorf("got %v", u)
	}
}

func TestSumBad(t *testing.T) {
	space := Space{Sites: 2, Values: 3}
	ok := &line{space, 1, -1}
	for name, terms := range map[string][]Term{
		"none":   {},
		"nil":    {{1, nil}},
		"weight": {{math.NaN(), ok}},
		"sites":  {{1, ok}, {1, &line{Space{Sites: 3, Values: 3}, 1, -1}}},
		"kind":   {{1, ok}, {1, &line{Space{Sites: 2, Values: 3, Kind: Ordinal}, 1, -1}}},
	} {
		var e *SumError
		if _, err := NewSum(terms...); !errors.As(err, &e) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	narrow := func(v int32) Term {
		return Term{1, &line{Space{Sites: 2, Values: 3, Allowed: [][]int32{{v}}}, 1, -1}}
	}
	var s *SpaceError
	if _, err := NewSum(narrow(0), narrow(1)); !errors.As(err, &s) {
		t.Errorf("disjoint allowed sets: got %v", err)
	}
}
