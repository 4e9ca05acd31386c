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

// TestFuse: products with a bias and normalised sums are merged where nothing else reads the sum, and
// the graph computes the same.
func TestFuse(t *testing.T) {
	const rows, width, out = 5, 6, 4
	r := rand.New(rand.NewPCG(7, 8))
	normal := func(n int64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	// A case builds a graph on x, [batch, sequence, width].
	type graph struct {
		*build.Builder
		weight func(dims ...int64) build.Value
	}
	norm := func(g graph, v build.Value, attrs ...*onnx.Attribute) build.Value {
		attrs = append(attrs, onnx.FloatAttr("epsilon", 0.01))
		return g.Op("LayerNormalization", []build.Value{v, g.weight(width), g.weight(width)}, attrs...)
	}
	for name, c := range map[string]struct {
		graph              func(g graph, x build.Value) build.Value
		gemms, skips, sums int // operators wanted
	}{
		"product and bias": {func(g graph, x build.Value) build.Value {
			return g.Add(g.MatMul(x, g.weight(width, out)), g.weight(out))
		}, 1, 0, 0},
		"bias first": {func(g graph, x build.Value) build.Value {
			return g.Add(g.weight(out), g.MatMul(x, g.weight(width, out)))
		}, 1, 0, 0},
		"product read twice": {func(g graph, x build.Value) build.Value {
			y := g.MatMul(x, g.weight(width, width))
			return g.Mul(g.Add(y, g.weight(width)), y)
		}, 0, 0, 1},
		"one bias for all": {func(g graph, x build.Value) build.Value {
			return g.Add(g.MatMul(x, g.weight(width, out)), g.weight(1))
		}, 0, 0, 1},
		"product of two activations": {func(g graph, x build.Value) build.Value {
			return g.Add(g.MatMul(g.MatMul(x, g.Transpose(x, 0, 2, 1)), x), g.weight(width))
		}, 0, 0, 1},
		"layer": {func(g graph, x build.Value) build.Value {
			h := g.Add(g.MatMul(x, g.weight(width, width)), g.weight(width))
			return norm(g, g.Add(h, x), onnx.IntAttr("axis", 2))
		}, 1, 1, 0},
		"shorter summand first": {func(g graph, x build.Value) build.Value {
			return norm(g, g.Add(g.weight(rows, width), g.Reshape(x, g.Ints(-1, rows, width))))
		}, 0, 1, 0},
		"summand of one row": {func(g graph, x build.Value) build.Value { return norm(g, g.Add(x, g.weight(1, width))) }, 0, 0, 1},
		"sum read twice": {func(g graph, x build.Value) build.Value {
			y := g.Add(x, g.Neg(g.Mul(x, x)))
			return g.Mul(y, norm(g, y))
		}, 0, 0, 1},
		"two axes": {func(g graph, x build.Value) build.Value {
			y := g.Reshape(g.Add(x, g.weight(rows, width)), g.Ints(-1, rows, width))
			return g.Op("LayerNormalization", []build.Value{y, g.weight(rows, width)}, onnx.IntAttr("axis", 1))
		}, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "g"}}
			b, err := build.New(m, "b/", nil)
			if err != nil {
				t.Fatal(err)
			}
			x := b.Input("x", onnx.Float, shape.Sym("batch"), shape.Sym("sequence"), shape.D(width))
			weight := func(dims ...int64) build.Value {
				n := int64(1)
				for _, d := range dims {
					n *= d
				}
				return b.Const(onnx.NewFloat("", dims, normal(n)))
			}
			b.Output("y", c.graph(graph{b, weight}, x))
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			in := &ort.Tensor{Shape: []int64{2, rows, width}, Data: normal(2 * rows * width)}
			want := computed(t, m, in)
			if err := Fuse(m); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, n := range m.Graph.Nodes {
				count[n.Op]++
			}
			if count["Gemm"] != c.gemms || count["SkipLayerNormalization"] != c.skips || count["Add"] != c.sums {
				t.Errorf("the graph has %v, want %d Gemm, %d SkipLayerNormalization, %d Add", count, c.gemms, c.skips, c.sums)
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
