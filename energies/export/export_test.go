package export

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/independent"
	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/onnx"
)

// TestEqualValues: U and gradients of the ONNX form, saved and read again, are those of the
// energy at every state. Gradients may differ by a constant in each site.
func TestEqualValues(t *testing.T) {
	for _, text := range []string{
		"ising:3x3,0.3,0.2", "potts:2x3,3,0.5", "gaussian-bernoulli:4", "fhmm:3x2,4", "rbm:6x5,1", "rbm-joint:4x3,1", "logistic:6x30,1",
	} {
		e, err := known.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, double := range []bool{false, true} {
			tolerance := 1e-4
			if double {
				tolerance = 1e-10
			}
			m, err := Model(e, double)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			file, err := onnx.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			again, err := onnx.Decode(file)
			if err != nil {
				t.Fatal(err)
			}
			model, err := neural.NewModel(again, neural.ModelOptions{Space: *e.Space()})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			compare(t, text, e, model, tolerance)
			model.Close()
		}
	}
	flat, err := independent.New(energies.Space{Sites: 2, Values: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Model(flat, false); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an energy without a form: %v", err)
	}
}

func compare(t *testing.T, text string, e energies.Oracle, model *neural.Model, tolerance float64) {
	t.Helper()
	all, err := table.Enumerate(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	sp, n := e.Space(), all.Len()
	ask := func(e energies.Oracle) energies.Query {
		q := energies.Query{Want: energies.Gradient, X: all.X, U: make([]float64, n), Grad: make([]float32, n*sp.Sites*sp.Values)}
		if err := e.Answer(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return q
	}
	want, got := ask(e), ask(model)
	for k := range n {
		if math.Abs(want.U[k]-got.U[k]) > tolerance {
			t.Fatalf("%s, state %v: U = %v, want %v", text, all.X.Chain(k), got.U[k], want.U[k])
		}
	}
	for r := 0; r < len(want.Grad); r += sp.Values {
		for v := range sp.Values {
			a, b := want.Grad[r+v]-want.Grad[r], got.Grad[r+v]-got.Grad[r]
			if math.Abs(float64(a-b)) > max(tolerance, 1e-5) {
				t.Fatalf("%s: gradient %d is %v, want %v", text, r+v, b, a)
			}
		}
	}
}
