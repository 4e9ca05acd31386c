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

// TestSplitHidden: y = ((erf(s)·V)·Vᵀ ∘ s)·Wᵀ with s = x·W + b, as in a forward and a backward pass, stays
// the same where the hidden layer is divided. Small and narrow layers stay whole, and layers that are an
// output, that a softmax reads, or that are multiplied with themselves.
func TestSplitHidden(t *testing.T) {
	const rows = 3
	for name, c := range map[string]struct {
		width, hidden int64
		more          func(b *build.Builder, h, v, w build.Value) // reads the layer h too
		parts         int
	}{
		"two parts":   {300, 2400, nil, 2},
		"three parts": {640, 2400, nil, 3},
		"small":       {256, 1024, nil, 1},
		"narrow":      {1000, 1500, nil, 1},
		"output":      {300, 2400, func(b *build.Builder, h, _, _ build.Value) { b.Output("h", h) }, 1},
		"softmax": {300, 2400, func(b *build.Builder, h, _, _ build.Value) {
			b.Output("h", b.Op("Softmax", []build.Value{h}))
		}, 1},
		"residual": {300, 2400, func(b *build.Builder, h, v, w build.Value) {
			square := b.Initializer(onnx.NewFloat("square", []int64{2400, 2400}, make([]float32, 2400*2400)))
			b.Output("h", b.MatMul(b.Add(h, b.MatMul(h, square)), v))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			normal := func(n int64, scale float64) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(scale * r.NormFloat64())
				}
				return v
			}
			m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "g"}}
			b, err := build.New(m, "b/", nil)
			if err != nil {
				t.Fatal(err)
			}
			x := b.Input("x", onnx.Float, shape.Sym("n"), shape.D(1), shape.D(c.width))
			scale := 1 / math.Sqrt(float64(c.width))
			w := b.Initializer(onnx.NewFloat("w", []int64{c.width, c.hidden}, normal(c.width*c.hidden, scale)))
			v := b.Initializer(onnx.NewFloat("v", []int64{c.hidden, c.width}, normal(c.width*c.hidden, scale)))
			bias := b.Initializer(onnx.NewFloat("bias", []int64{c.hidden}, normal(c.hidden, 1)))
			s := b.Add(b.MatMul(x, w), bias)
			h := b.Op("Erf", []build.Value{b.Scale(s, 0.7)})
			dy := b.MatMul(h, v)
			b.Output("y", b.MatMul(b.Mul(b.MatMul(dy, b.SwapLast(v)), s), b.SwapLast(w)))
			if c.more != nil {
				c.more(b, h, v, w)
			}
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			in := &ort.Tensor{Shape: []int64{rows, 1, c.width}, Data: normal(rows*c.width, 1)}
			want, products := computed(t, m, in), countOf(m, "MatMul")
			if err := SplitHidden(m); err != nil {
				t.Fatal(err)
			}
			if n := countOf(m, "MatMul"); n != products*c.parts {
				t.Errorf("%d products, want %d", n, products*c.parts)
			}
			size := 0.0
			for _, y := range want {
				size = max(size, math.Abs(float64(y)))
			}
			got := computed(t, m, in)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5*size {
					t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// countOf returns the number of nodes of an operator.
func countOf(m *onnx.Model, op string) int {
	n := 0
	for _, node := range m.Graph.Nodes {
		if node.Op == op {
			n++
		}
	}
	return n
}
