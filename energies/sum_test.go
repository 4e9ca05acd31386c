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
	if e.Space().Allows(0, 2) || !e.Space().Allows(1, 2) || e.Space().Allows(1, 0) {
		t.Errorf("allowed: %v", e.Space().Allowed)
	}
	x := Batch{Space: e.Space(), Codes: []int32{0, 1, 1, 2}}
	u, g := make([]float64, 2), make([]float32, 12)
	if err := e.Answer(t.Context(), Query{Want: Gradient, X: x, U: u, Grad: g}); err != nil {
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
	if e.Capabilities().Answers != Density {
		t.Errorf("a sum with a term that has U alone answers %s", e.Capabilities().Answers)
	}
	var lacks *UnsupportedError
	if err := e.Answer(t.Context(), Query{Want: Gradient}); !errors.As(err, &lacks) || lacks.Want != Gradient {
		t.Errorf("its gradient: %v", err)
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
		var e *SpaceError
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

// wide is a sloped energy that answers more; what it answers tells who was asked.
type wide struct {
	sloped
	can Capabilities
}

func (w *wide) Capabilities() Capabilities { return w.can }

func (w *wide) Answer(ctx context.Context, q Query) error {
	switch q.Want {
	case Gradient:
		return w.LogDensityGrad(ctx, q.U, q.Grad, q.X)
	case Temper:
		for i := range q.Tilt {
			q.Tilt[i] = float32(q.Beta[0])*q.Grad[i] + float32(w.slope)
		}
	case Estimate:
		for c := range q.U {
			q.U[c] = w.slope * float64(q.Terms[c][0])
		}
		return w.LogDensityGrad(ctx, make([]float64, len(q.U)), q.Grad, q.X)
	case Conditional:
		for k := range q.LogP {
			q.LogP[k] = w.slope * float64(k%w.space.Values)
			if !w.space.Allows(q.Site, int32(k%w.space.Values)) {
				q.LogP[k] = math.Inf(-1)
			}
		}
	default:
		return w.LogDensity(ctx, q.U, q.X)
	}
	return nil
}

// TestSumCapabilities: a sum answers what all its terms answer.
func TestSumCapabilities(t *testing.T) {
	space, narrow := Space{Sites: 1, Values: 3}, Space{Sites: 1, Values: 3, Allowed: [][]int32{{0, 2}}}
	other := Space{Sites: 1, Values: 3, Allowed: [][]int32{{1, 2}}}
	warm := func(s Space) Energy {
		return &wide{sloped{line{s, 1, -1}}, Capabilities{Answers: Density | Gradient | Tilt | Temper | ModelConditional}}
	}
	loud := func(n int) Energy {
		return &wide{sloped{line{space, 2, -1}}, Capabilities{Answers: Density | Gradient | Estimate, Terms: n}}
	}
	all := &wide{sloped{line{space, 3, -1}}, Capabilities{Answers: Density | Gradient | Tilt | Temper | Estimate | Conditional, Terms: 4}}
	const grad, tilts = Density | Gradient, Density | Gradient | Tilt | Temper
	for name, c := range map[string]struct {
		a, b Energy
		want Capability
	}{
		"tilts":                  {warm(space), warm(space), tilts},
		"one does not tilt":      {warm(space), &sloped{line{space, 1, -1}}, grad},
		"one allows less":        {warm(space), warm(narrow), tilts},
		"estimates":              {loud(4), loud(4), grad | Estimate},
		"other numbers of terms": {loud(4), loud(5), grad},
		"one has no terms":       {warm(space), loud(4), grad},
		"all":                    {all, all, tilts | Estimate | Conditional},
		"all and tilts":          {all, warm(space), tilts},
		"all and estimates":      {loud(4), all, grad | Estimate},
		"no term allows as much": {warm(narrow), warm(other), grad},
	} {
		e, err := NewSum(Term{1, c.a}, Term{-2, c.b})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Capabilities().Answers; got != c.want {
			t.Errorf("%s: answers %s, want %s", name, got, c.want)
		}
	}
}

// TestSumAnswers: the term that allows what the sum does computes the softmax of the sum's
// gradient; estimates use the same terms of every energy; conditionals add up.
func TestSumAnswers(t *testing.T) {
	narrow := Space{Sites: 1, Values: 3, Allowed: [][]int32{{0, 2}}}
	can := Capabilities{Answers: Density | Gradient | Tilt | Temper | Estimate | Conditional, Terms: 9}
	e, err := NewSum(Term{1, &wide{sloped{line{Space{Sites: 1, Values: 3}, 1, -1}}, can}}, Term{-2, &wide{sloped{line{narrow, 5, -1}}, can}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q Query) Query {
		q.X = Batch{Space: e.Space(), Codes: []int32{2}}
		if err := e.Answer(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := ask(Query{Want: Temper, Grad: []float32{1, 2, 3}, Tilt: make([]float32, 3), Beta: []float64{10}}); q.Tilt[2] != 35 {
		t.Errorf("tilt %v, want that of the second term, 10·g+5", q.Tilt)
	}
	if q := ask(Query{Want: Tilt, U: make([]float64, 1), Tilt: make([]float32, 3)}); q.U[0] != -18 || q.Tilt[2] != -13 {
		t.Errorf("U %v and tilt %v, want (1-10)·2 and (1-10)·2+5", q.U, q.Tilt)
	}
	if q := ask(Query{Want: Estimate, U: make([]float64, 1), Grad: make([]float32, 3), Terms: [][]int32{{7}}}); q.U[0] != 7-70 || q.Grad[2] != -18 {
		t.Errorf("estimate %v and gradient %v", q.U, q.Grad)
	}
	if q := ask(Query{Want: Conditional, LogP: make([]float64, 3)}); q.LogP[2] != -18 || !math.IsInf(q.LogP[1], -1) {
		t.Errorf("conditional %v", q.LogP)
	}
}
