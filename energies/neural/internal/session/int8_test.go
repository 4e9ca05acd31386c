package session

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// TestInt8: the provider cpu,int8 rounds the products of a model, which stays as it is, passes the
// comparison with cpu, and makes rows of a run depend on each other.
func TestInt8(t *testing.T) {
	const width = 128
	r := rand.New(rand.NewPCG(1, 2))
	w, x := make([]float32, width*width), make([]float32, 4*width)
	for i := range w {
		w[i] = float32(r.NormFloat64())
	}
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	dims := []onnx.ShapeDim{{Value: -1, Param: "n"}, {Value: width}}
	matrix := onnx.Type{Elem: onnx.Float, HasShape: true, Shape: dims}
	g := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "product",
		Inputs: []*onnx.ValueInfo{{Name: "x", Type: matrix}}, Outputs: []*onnx.ValueInfo{{Name: "y", Type: matrix}},
		Initializers: []*onnx.Tensor{onnx.NewFloat("w", []int64{width, width}, w)},
		Nodes:        []*onnx.Node{{Op: "MatMul", Name: "product", Inputs: []string{"x", "w"}, Outputs: []string{"y"}}},
	}}
	var y [2][]float32
	for k, provider := range []string{"cpu", "cpu,int8"} {
		o := ort.Options{Provider: provider, Threads: 1}
		s, err := Open(t.Context(), g, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		out := []*ort.Tensor{nil}
		if err := s.Run(t.Context(), map[string]*ort.Tensor{"x": {Shape: []int64{4, width}, Data: x}}, out); err != nil {
			t.Fatal(err)
		}
		if y[k] = out[0].Data.([]float32); MixesRows(g.Graph, o) != (k == 1) || len(g.Graph.Nodes) != 1 {
			t.Errorf("%s: rows depend on each other: %v; %d nodes", provider, MixesRows(g.Graph, o), len(g.Graph.Nodes))
		}
	}
	off, size := 0.0, 0.0
	for i, v := range y[0] {
		off, size = off+math.Pow(float64(v-y[1][i]), 2), size+float64(v)*float64(v)
	}
	// Uniform rounding errors of 1/√12 steps: of x, in 255 steps of about 6.5 standard deviations, and
	// of w, in 126 of about 5.5.
	if e := math.Sqrt(off / size); e < 0.005 || e > 0.03 {
		t.Errorf("relative error %.4f, want about 0.015", e)
	}
}
