package rewrite_test

import (
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/gradtest"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// constant adds random numbers as an initialiser.
func constant(g *gen, dims ...int64) value {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	v := make([]float32, n)
	for k := range v {
		v[k] = float32(g.Signed())
	}
	return g.Weights(onnx.NewFloat("", dims, v))
}

// TestMergeProducts: products of one value with constants become one, and all outputs stay
// what they were.
func TestMergeProducts(t *testing.T) {
	for name, c := range map[string]struct {
		write func(g *gen, x value) []value
		want  int // products that are left
	}{
		"with biases": {func(g *gen, x value) []value {
			return []value{g.Add(g.MatMul(x, constant(g, 4, 3)), constant(g, 3)), g.Add(constant(g, 5), g.MatMul(x, constant(g, 4, 5)))}
		}, 1},
		"without": {func(g *gen, x value) []value {
			return []value{g.MatMul(x, constant(g, 4, 3)), g.Neg(g.MatMul(x, constant(g, 4, 1))), g.Add(g.MatMul(x, constant(g, 4, 2)), constant(g, 2))}
		}, 1},
		"a bias that is not alone": {func(g *gen, x value) []value {
			y := g.MatMul(x, constant(g, 4, 3))
			return []value{g.Add(y, constant(g, 3)), g.Op("Tanh", []value{y}), g.Add(g.MatMul(x, constant(g, 4, 3)), constant(g, 3))}
		}, 1},
		"a bias for each row": {func(g *gen, x value) []value {
			return []value{g.Add(g.MatMul(x, constant(g, 4, 3)), constant(g, 2, 3)), g.Add(g.MatMul(x, constant(g, 4, 3)), constant(g, 1))}
		}, 1},
		"transposed": {func(g *gen, x value) []value {
			return []value{g.MatMul(x, g.Transpose(constant(g, 3, 4), 1, 0)), g.MatMul(x, constant(g, 4, 2))}
		}, 1},
		"of two values": {func(g *gen, x value) []value {
			y := g.Op("Tanh", []value{x})
			return []value{g.MatMul(x, constant(g, 4, 3)), g.MatMul(y, constant(g, 4, 3)), g.MatMul(g.MatMul(x, constant(g, 4, 4)), constant(g, 4, 2))}
		}, 3},
		"with an input": {func(g *gen, x value) []value {
			return []value{g.MatMul(x, constant(g, 4, 3)), g.MatMul(x, g.Fixed(shape.Dims(4, 3), g.Signed))}
		}, 2},
		"with a vector": {func(g *gen, x value) []value {
			return []value{g.MatMul(x, constant(g, 4)), g.MatMul(x, constant(g, 4, 3))}
		}, 2},
		"from the right": {func(g *gen, x value) []value {
			return []value{g.MatMul(constant(g, 3, 2), g.MatMul(x, constant(g, 4, 3))), g.MatMul(constant(g, 5, 2), x)}
		}, 3},
	} {
		for trial := range uint64(4) {
			g := gradtest.NewGen(18, onnx.Float, trial%2 == 0, trial)
			shape := []shape.Dim{g.Dim(), shape.D(2), shape.D(4)}
			if name == "from the right" {
				shape = shape[1:]
			}
			x := g.Float(shape, g.Signed)
			for i, y := range c.write(g, x) {
				g.Output(string(rune('a'+i)), y)
			}
			if g.Err() != nil {
				t.Fatalf("%s: %v", name, g.Err())
			}
			m := g.Model().Clone()
			rewrite.Prune(m.Graph)
			if err := rewrite.MergeProducts(m); err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, n := range m.Graph.Nodes {
				if n.Op == "MatMul" {
					count++
				}
			}
			if count != c.want {
				t.Errorf("%s: %d products, want %d", name, count, c.want)
			}
			want, err := gradtest.Run(g.Model(), g.Feeds)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := gradtest.Run(m, g.Feeds)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for k := range want {
				if err := gradtest.Near(got[k], want[k], 1e-5); err != nil {
					t.Errorf("%s, output %s: %v", name, k, err)
				}
			}
		}
	}
}
