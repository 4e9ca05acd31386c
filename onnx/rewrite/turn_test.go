package rewrite

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestTurnKernels: transposed convolutions of stride 1 become convolutions that compute the same; others
// stay.
func TestTurnKernels(t *testing.T) {
	ints := onnx.IntsAttr
	for name, c := range map[string]struct {
		weight []int64
		attrs  []*onnx.Attribute
		turned bool
	}{
		"plain":        {[]int64{4, 3, 3, 3}, nil, true},
		"padding":      {[]int64{4, 1, 3, 2}, []*onnx.Attribute{ints("pads", 1, 0, 2, 1)}, true},
		"dilation":     {[]int64{4, 2, 2, 3}, []*onnx.Attribute{ints("pads", 2, 1, 0, 3), ints("dilations", 3, 2)}, true},
		"same":         {[]int64{4, 2, 4, 3}, []*onnx.Attribute{onnx.StringAttr("auto_pad", "SAME_UPPER")}, true},
		"output shape": {[]int64{4, 2, 3, 3}, []*onnx.Attribute{ints("output_shape", 7, 6)}, true},
		"stride":       {[]int64{4, 2, 3, 3}, []*onnx.Attribute{ints("strides", 1, 2)}, false},
		"group":        {[]int64{4, 2, 3, 3}, []*onnx.Attribute{onnx.IntAttr("group", 2)}, false},
		"much padding": {[]int64{4, 2, 2, 2}, []*onnx.Attribute{ints("pads", 2, 0, 0, 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			normal := func(n int64) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
				return v
			}
			m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "g"}}
			b, err := build.New(m, "b/", nil)
			if err != nil {
				t.Fatal(err)
			}
			x := b.Input("x", onnx.Float, shape.Sym("n"), shape.D(4), shape.D(6), shape.D(5))
			w := b.Initializer(onnx.NewFloat("w", c.weight, normal(c.weight[0]*c.weight[1]*c.weight[2]*c.weight[3])))
			channels := c.weight[1]
			for _, a := range c.attrs {
				if a.Name == "group" {
					channels *= a.I
				}
			}
			bias := b.Initializer(onnx.NewFloat("bias", []int64{channels}, normal(channels)))
			b.Output("y", b.Op("ConvTranspose", []build.Value{x, w, bias}, c.attrs...))
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			in := &ort.Tensor{Shape: []int64{2, 4, 6, 5}, Data: normal(2 * 4 * 6 * 5)}
			want := computed(t, m, in)
			if err := TurnKernels(m); err != nil {
				t.Fatal(err)
			}
			op := ""
			for _, n := range m.Graph.Nodes {
				if n.Op == "Conv" || n.Op == "ConvTranspose" {
					op += n.Op
				}
			}
			if (op == "Conv") != c.turned {
				t.Fatalf("the graph has %s", op)
			}
			got := computed(t, m, in)
			if len(got) != len(want) {
				t.Fatalf("%d elements, want %d", len(got), len(want))
			}
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5 {
					t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// computed runs a model from x to y.
func computed(t *testing.T, m *onnx.Model, x *ort.Tensor) []float32 {
	t.Helper()
	proto, err := onnx.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ort.Open(t.Context(), proto, []string{"x"}, []string{"y"}, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := []*ort.Tensor{nil}
	if err := s.Run(t.Context(), []*ort.Tensor{x}, out); err != nil {
		t.Fatal(err)
	}
	return out[0].Data.([]float32)
}
