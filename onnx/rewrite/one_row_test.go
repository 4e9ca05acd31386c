package rewrite

import (
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestOneRow: keys and values that one row reads are no longer computed, others are, and the results stay.
func TestOneRow(t *testing.T) {
	const texts, length, width, heads, each = 2, 5, 6, 3, 4
	batch, seq := shape.Sym("batch"), shape.Sym("sequence")
	x := &ort.Tensor{Shape: []int64{texts, length, width}}
	// split projects x and divides the result among heads.
	split := func(g textGraph, x build.Value) build.Value {
		h := g.Add(g.MatMul(x, g.weight(width, heads*each)), g.weight(heads*each))
		return g.ReshapeTo(h, []shape.Dim{batch, seq, shape.D(heads), shape.D(each)}, x)
	}
	for name, c := range map[string]struct {
		graph func(g textGraph, x build.Value) build.Value
		left  int // products over all positions of x that stay
	}{
		"keys": {func(g textGraph, x build.Value) build.Value {
			return g.MatMul(g.weight(texts, heads, 1, each), g.Transpose(split(g, x), 0, 2, 3, 1))
		}, 0},
		"keys by two transpositions": {func(g textGraph, x build.Value) build.Value {
			k := g.Op("Transpose", []build.Value{g.Transpose(split(g, x), 0, 2, 1, 3)}, onnx.IntsAttr("perm", 0, 1, 3, 2))
			return g.MatMul(g.weight(texts, heads, 1, each), k)
		}, 0},
		"values, weights that do not add up to 1": {func(g textGraph, x build.Value) build.Value {
			return g.MatMul(g.weight(texts, heads, 1, length), g.Transpose(split(g, x), 0, 2, 1, 3))
		}, 0},
		"bias first": {func(g textGraph, x build.Value) build.Value {
			h := g.Add(g.weight(heads*each), g.MatMul(x, g.weight(width, heads*each)))
			h = g.ReshapeTo(h, []shape.Dim{batch, seq, shape.D(heads), shape.D(each)}, x)
			return g.MatMul(g.weight(texts, heads, 1, length), g.Transpose(h, 0, 2, 1, 3))
		}, 0},
		"two rows": {func(g textGraph, x build.Value) build.Value {
			return g.MatMul(g.weight(texts, heads, 2, each), g.Transpose(split(g, x), 0, 2, 3, 1))
		}, 1},
		"rotated keys": {func(g textGraph, x build.Value) build.Value {
			k := g.Mul(split(g, x), g.weight(length, 1, each))
			return g.MatMul(g.weight(texts, heads, 1, each), g.Transpose(k, 0, 2, 3, 1))
		}, 1},
		"heads last": {func(g textGraph, x build.Value) build.Value {
			return g.MatMul(g.weight(texts, each, 1, length), g.Transpose(split(g, x), 0, 3, 1, 2))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTextGraph(t)
			x.Data = g.normal(texts * length * width)
			in := g.Input("x", onnx.Float, batch, seq, shape.D(width))
			g.Output("y", c.graph(g, in))
			want := g.run(t, map[string]*ort.Tensor{"x": x})
			OneRow(g.Builder)
			Prune(g.Model().Graph)
			same(t, g.run(t, map[string]*ort.Tensor{"x": x}), want)
			left := 0
			for _, n := range g.Model().Graph.Nodes {
				if w, _ := g.Shape(n.In(1)); n.Op == "MatMul" && len(w) == 2 {
					left++
				}
			}
			if left != c.left {
				t.Errorf("%d products over all positions, want %d", left, c.left)
			}
		})
	}
}
