package table

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

var background = context.Background()

func random(t *testing.T, sp *energies.Space) *Energy {
	t.Helper()
	n := int(math.Pow(float64(sp.Values), float64(sp.Sites)))
	r, logp := rand.New(rand.NewPCG(3, 4)), make([]float64, n)
	for k := range logp {
		logp[k] = r.NormFloat64()
	}
	e, err := New(sp, logp)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// extension is the multilinear extension by its definition.
func extension(e *Energy, z []float64) float64 {
	d, s, u := e.space.Sites, e.space.Values, 0.0
	for k, t := range e.logp {
		rest := k
		for i := d - 1; i >= 0; i-- {
			t *= z[i*s+rest%s]
			rest /= s
		}
		u += t
	}
	return u
}

func TestGradientAgainstFiniteDifferences(t *testing.T) {
	const d, s, h = 3, 3, 1e-4
	e := random(t, &energies.Space{Sites: d, Values: s})
	x := energies.Batch{Space: e.Space(), Codes: []int32{2, 0, 1}}
	u, g := make([]float64, 1), make([]float32, d*s)
	if err := e.LogDensityGrad(background, u, g, x); err != nil {
		t.Fatal(err)
	}
	z := make([]float64, d*s)
	for i, v := range x.Codes {
		z[i*s+int(v)] = 1
	}
	if u[0] != extension(e, z) {
		t.Errorf("U = %v, want %v", u[0], extension(e, z))
	}
	for k := range z {
		old := z[k]
		z[k] = old + h
		up := extension(e, z)
		z[k] = old - h
		want := (up - extension(e, z)) / (2 * h)
		z[k] = old
		if math.Abs(float64(g[k])-want) > 1e-6 {
			t.Errorf("site %d, value %d: gradient %v, finite difference %v", k/s, k%s, g[k], want)
		}
	}
}

func TestEnumerate(t *testing.T) {
	sp := &energies.Space{Sites: 3, Values: 3, Allowed: [][]int32{{0, 2}, {0, 1, 2}, {1}}}
	e := random(t, sp)
	w, err := Enumerate(background, e)
	if err != nil {
		t.Fatal(err)
	}
	if w.Len() != 6 {
		t.Fatalf("%d states, want 6", w.Len())
	}
	sum, z := 0.0, 0.0
	for k := range w.Len() {
		if got := w.Find(w.X.Chain(k)); got != k {
			t.Errorf("state %d is found as %d", k, got)
		}
		sum += w.P[k]
		z += math.Exp(w.U[k])
	}
	if math.Abs(sum-1) > 1e-12 || math.Abs(math.Log(z)-w.LogZ) > 1e-12 {
		t.Errorf("probabilities sum to %v; log Z %v, want %v", sum, w.LogZ, math.Log(z))
	}
	if w.Find([]int32{1, 0, 1}) != -1 {
		t.Error("a state that is not allowed is found")
	}
	if w.Draw(1e-12) != 0 || w.Draw(1-1e-12) != 5 || w.Draw(w.P[0]+1e-9) != 1 {
		t.Error("draws do not follow the cumulative probabilities")
	}
	var size *energies.SpaceError
	if _, err := Enumerate(background, big{}); !errors.As(err, &size) {
		t.Errorf("a large space: %v", err)
	}
}

type big struct{ *Energy }

func (big) Space() *energies.Space { return &energies.Space{Sites: 100, Values: 10} }

func TestZeroProbability(t *testing.T) {
	sp := &energies.Space{Sites: 1, Values: 3}
	e, err := New(sp, []float64{-2, math.Inf(-1), 1})
	if err != nil {
		t.Fatal(err)
	}
	u, g, lp := make([]float64, 1), make([]float32, 3), make([]float64, 3)
	x := energies.Batch{Space: sp, Codes: []int32{2}}
	if err := errors.Join(e.LogDensityGrad(background, u, g, x), e.LogConditional(background, lp, 0, x)); err != nil {
		t.Fatal(err)
	}
	if g[1] != -2 || !math.IsInf(lp[1], -1) || lp[0] != -2 {
		t.Errorf("gradient %v, conditional %v", g, lp)
	}
	var size *energies.SpaceError
	if _, err := New(sp, []float64{1}); !errors.As(err, &size) {
		t.Errorf("short table: %v", err)
	}
}
