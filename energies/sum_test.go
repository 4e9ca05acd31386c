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

// tempered is a sloped energy that tilts by telling who did it.
type tempered struct{ sloped }

func (*tempered) LogDensityTilt(context.Context, []float64, []float32, Batch) error { return nil }

func (e *tempered) Tilt(_ context.Context, p, g []float32, beta float64) error {
	for i := range p {
		p[i] = float32(beta)*g[i] + float32(e.slope)
	}
	return nil
}

// noisy is a sloped energy of n equal terms, whose estimates say which were drawn.
type noisy struct {
	sloped
	n int
}

func (e *noisy) Terms() int { return e.n }

func (e *noisy) EstimateGrad(ctx context.Context, u []float64, g []float32, x Batch, batch [][]int32) error {
	err := e.LogDensityGrad(ctx, u, g, x)
	for c := range u {
		u[c] = e.slope * float64(batch[c][0])
	}
	return err
}

type whole struct {
	tempered
	n noisy
}

func (e *whole) Terms() int { return e.n.n }

func (e *whole) EstimateGrad(ctx context.Context, u []float64, g []float32, x Batch, batch [][]int32) error {
	return e.n.EstimateGrad(ctx, u, g, x, batch)
}

// TestSumIsWhatItsTermsAre: a sum has the methods that all terms have, and no others.
func TestSumIsWhatItsTermsAre(t *testing.T) {
	space, narrow := Space{Sites: 1, Values: 3}, Space{Sites: 1, Values: 3, Allowed: [][]int32{{0, 2}}}
	plain := &sloped{line{space, 1, -1}}
	warm := func(s Space, slope float64) Energy { return &tempered{sloped{line{s, slope, -1}}} }
	loud := func(n int) Energy { return &noisy{sloped{line{space, 2, -1}}, n} }
	all := &whole{tempered{sloped{line{space, 3, -1}}}, noisy{sloped{line{space, 3, -1}}, 4}}
	for name, c := range map[string]struct {
		a, b                 Energy
		tempered, stochastic bool
	}{
		"tempered":               {warm(space, 1), warm(space, 2), true, false},
		"one is not tempered":    {warm(space, 1), plain, false, false},
		"one allows less":        {warm(space, 1), warm(narrow, 2), true, false},
		"stochastic":             {loud(4), loud(4), false, true},
		"other numbers of terms": {loud(4), loud(5), false, false},
		"one is not stochastic":  {plain, loud(4), false, false},
		"both":                   {all, all, true, true},
		"both and tempered":      {all, warm(space, 1), true, false},
		"both and stochastic":    {loud(4), all, false, true},
		"no term allows as much": {warm(narrow, 1), warm(Space{Sites: 1, Values: 3, Allowed: [][]int32{{1, 2}}}, 1), false, false},
	} {
		e, err := NewSum(Term{1, c.a}, Term{-2, c.b})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(Differentiable); !ok {
			t.Errorf("%s: not differentiable", name)
		}
		if _, ok := e.(Tempered); ok != c.tempered {
			t.Errorf("%s: tempered is %v", name, ok)
		}
		if _, ok := e.(Stochastic); ok != c.stochastic {
			t.Errorf("%s: stochastic is %v", name, ok)
		}
	}
}

// TestSumTilt: the term that allows what the sum does computes the softmax, of the
// gradient of the sum.
func TestSumTilt(t *testing.T) {
	narrow := Space{Sites: 1, Values: 3, Allowed: [][]int32{{0, 2}}}
	e, err := NewSum(Term{1, &tempered{sloped{line{Space{Sites: 1, Values: 3}, 1, -1}}}}, Term{-2, &tempered{sloped{line{narrow, 5, -1}}}})
	if err != nil {
		t.Fatal(err)
	}
	p, u := make([]float32, 3), make([]float64, 1)
	if err := e.(Tempered).Tilt(context.Background(), p, []float32{1, 2, 3}, 10); err != nil || p[2] != 35 {
		t.Errorf("tilt %v (%v), want that of the second term, 10·g+5", p, err)
	}
	if err := e.(Tempered).LogDensityTilt(context.Background(), u, p, Batch{Space: e.Space(), Codes: []int32{2}}); err != nil || u[0] != -18 || p[2] != -13 {
		t.Errorf("U %v and tilt %v (%v), want (1-10)·2 and (1-10)·2+5", u, p, err)
	}
}

// TestSumEstimate: every energy is asked for the same terms of each chain.
func TestSumEstimate(t *testing.T) {
	space := Space{Sites: 1, Values: 3}
	e, err := NewSum(Term{1, &noisy{sloped{line{space, 2, -1}}, 9}}, Term{-3, &noisy{sloped{line{space, 1, -1}}, 9}})
	if err != nil {
		t.Fatal(err)
	}
	s := e.(Stochastic)
	u, g := make([]float64, 2), make([]float32, 6)
	if err := s.EstimateGrad(context.Background(), u, g, Batch{Space: e.Space(), Codes: []int32{0, 1}}, [][]int32{{7}, {8}}); err != nil {
		t.Fatal(err)
	}
	if s.Terms() != 9 || u[0] != -7 || u[1] != -8 || g[5] != -2 {
		t.Errorf("%d terms, estimates %v and gradient %v", s.Terms(), u, g)
	}
}
