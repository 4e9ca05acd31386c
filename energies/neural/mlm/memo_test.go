package mlm

import (
	"errors"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

func memoEnergy(t *testing.T, remember int64) *Infill {
	t.Helper()
	model, err := onnx.Load("testdata/bert/legacy-14/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(model, Options{MaskID: 4, Remember: remember, Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	e, err := m.Infill(Text{IDs: []int32{2, 20, 4, 33, 41, 4, 27, 3}, Blanks: []int{2, 5}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Repeated states give the same numbers with a cache and without, and each runs the model
// once for each kind of query.
func TestCache(t *testing.T) {
	cached, plain := memoEnergy(t, 0), memoEnergy(t, -1)
	x := energies.Batch{Space: cached.Space(), Codes: []int32{7, 8, 9, 9, 7, 8, 7, 9}}
	row := cached.Space().Sites * cached.Space().Values
	for _, want := range []energies.Capability{energies.Tilt, energies.Tilt, energies.Gradient} {
		ask := func(e *Infill) (u []float64, g []float32) {
			u, g = make([]float64, 4), make([]float32, 4*row)
			answer := e.LogDensityGrad
			if want == energies.Tilt {
				answer = e.LogDensityTilt
			}
			if err := answer(t.Context(), u, g, x); err != nil {
				t.Fatal(err)
			}
			return u, g
		}
		gotU, got := ask(cached)
		if u, g := ask(plain); !slices.Equal(gotU, u) || !slices.Equal(got, g) {
			t.Errorf("%s: the cache changes results", want)
		}
	}
	if a, b := cached.m.Sequences(), plain.m.Sequences(); a != 12 || b != 24 {
		t.Errorf("%d and %d sequences went through the model, want 2·3 and 3·4 states of two blanks each: 12 and 24", a, b)
	}
}

// TestPredicted: U and predictions are, to the bit, those of the energy, and no prediction is
// computed twice.
func TestPredicted(t *testing.T) {
	e := memoEnergy(t, 0)
	e.m.opts.Temperature = 0.7
	p, plain := e.Predicted(), memoEnergy(t, -1)
	plain.m.opts.Temperature = 0.7
	x := energies.Batch{Space: e.Space(), Codes: []int32{7, 8, 9, 9, 7, 8, 7, 9}}
	row := x.Space.Values
	for _, site := range []int{0, 1} {
		ask := func(e Filling) (u, lp []float64) {
			u, lp = make([]float64, 4), make([]float64, 4*row)
			if err := errors.Join(e.LogPrediction(t.Context(), lp, site, x), e.LogDensity(t.Context(), u, x)); err != nil {
				t.Fatal(err)
			}
			return u, lp
		}
		u, lp := ask(p)
		if wantU, want := ask(plain); !slices.Equal(u, wantU) || !slices.Equal(lp, want) {
			t.Errorf("site %d: U %v and predictions differ from those of the energy, %v", site, u, wantU)
		}
	}
	// Of states 7 8, 9 9 and 7 9: 7 _, 9 _, _ 8, _ 9.
	if n := e.m.Sequences(); n != 4 {
		t.Errorf("%d sequences went through the model, want 4", n)
	}
}
