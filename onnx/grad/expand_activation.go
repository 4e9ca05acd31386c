package grad

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// gelu writes ½·x·(1 + erf(x/√2)) in the form that Compose recognises.
func gelu(b *build.Builder, x Value) Value {
	p := b.Add(b.Op("Erf", []Value{b.Scale(x, math.Sqrt2/2)}), b.Scalar(1, x))
	return b.Scale(b.Mul(x, p), 0.5)
}

// y = ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), with the bias added to x first.
func expandFastGelu(b *build.Builder, n *onnx.Node) []Value {
	x := n.In(0)
	if n.In(1) != "" {
		x = b.Add(x, n.In(1))
	}
	return []Value{geluTanh(b, x)}
}

func geluTanh(b *build.Builder, x Value) Value {
	root := math.Sqrt(2 / math.Pi)
	u := b.Mul(x, b.Add(b.Scale(b.Mul(x, x), 0.044715*root), b.Scalar(root, x)))
	half := b.Scale(x, 0.5)
	return b.Add(half, b.Mul(half, b.Op("Tanh", []Value{u})))
}

// y = x·sigmoid(α·x)
func expandQuickGelu(b *build.Builder, n *onnx.Node) []Value {
	x := n.In(0)
	return []Value{b.Mul(x, b.Op("Sigmoid", []Value{b.Scale(x, float64(n.Float("alpha", 1.702)))}))}
}
