package mlm

import (
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
		ask := func(e *Infill) energies.Query {
			q := energies.Query{Want: want, X: x, U: make([]float64, 4), Grad: make([]float32, 4*row), Tilt: make([]float32, 4*row)}
			if err := e.Answer(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			return q
		}
		got, fresh := ask(cached), ask(plain)
		if !slices.Equal(got.U, fresh.U) || !slices.Equal(got.Grad, fresh.Grad) || !slices.Equal(got.Tilt, fresh.Tilt) {
			t.Errorf("%s: the cache changes results", want)
		}
	}
	if a, b := cached.m.Sequences(), plain.m.Sequences(); a != 12 || b != 24 {
		t.Errorf("%d and %d sequences went through the model, want 2·3 and 3·4 states of two blanks each: 12 and 24", a, b)
	}
}
