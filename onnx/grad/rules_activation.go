package grad

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	unary("Exp", func(b *onnx.Builder, _, y Value) Value { return y })
	unary("Log", func(b *onnx.Builder, x, _ Value) Value { return b.Op("Reciprocal", []Value{x}) })
	unary("Sqrt", func(b *onnx.Builder, _, y Value) Value { return b.Div(b.Scalar(0.5, y), y) })
	unary("Reciprocal", func(b *onnx.Builder, _, y Value) Value { return b.Neg(b.Mul(y, y)) })
	unary("Abs", func(b *onnx.Builder, x, _ Value) Value { return b.Op("Sign", []Value{x}) })
	unary("Tanh", func(b *onnx.Builder, _, y Value) Value { return b.Sub(b.Scalar(1, y), b.Mul(y, y)) })
	unary("Sigmoid", func(b *onnx.Builder, _, y Value) Value { return b.Mul(y, b.Sub(b.Scalar(1, y), y)) })
	unary("Softplus", func(b *onnx.Builder, x, _ Value) Value { return b.Op("Sigmoid", []Value{x}) })
	unary("Sin", func(b *onnx.Builder, x, _ Value) Value { return b.Op("Cos", []Value{x}) })
	unary("Cos", func(b *onnx.Builder, x, _ Value) Value { return b.Neg(b.Op("Sin", []Value{x})) })
	unary("Erf", func(b *onnx.Builder, x, _ Value) Value {
		return b.Scale(b.Op("Exp", []Value{b.Neg(b.Mul(x, x))}), twoOverSqrtPi)
	})
	unary("Relu", func(b *onnx.Builder, x, _ Value) Value {
		return b.Cast(b.Op("Greater", []Value{x, b.Scalar(0, x)}), b.Info(x).Type)
	})
	standard(ruleGelu, "Gelu")
}

// unary registers y = f(x) by its derivative, a function of x and y.
func unary(op string, derivative func(b *onnx.Builder, x, y Value) Value) {
	standard(func(b *onnx.Builder, n Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], derivative(b, n.In(0), n.Out(0)))}
	}, op)
}

// ruleGelu: y = x·Φ(x) gives Φ(x) + x·φ(x); approximate="tanh" gives, with
// u = √(2/π)(x + 0.044715x³) and t = tanh u, ½(1+t) + ½x(1-t²)u'.
func ruleGelu(b *onnx.Builder, n Node, dy []Value) []Value {
	x := n.In(0)
	one := b.Scalar(1, x)
	if n.Str("approximate", "none") == "tanh" {
		const a = 0.044715
		c := math.Sqrt(2 / math.Pi)
		xx := b.Mul(x, x)
		u := b.Mul(x, b.Add(b.Scale(xx, a*c), b.Scalar(c, x)))
		t := b.Op("Tanh", []Value{u})
		du := b.Add(b.Scale(xx, 3*a*c), b.Scalar(c, x))
		tail := b.Mul(b.Mul(x, b.Sub(one, b.Mul(t, t))), du)
		return []Value{b.Mul(dy[0], b.Scale(b.Add(b.Add(one, t), tail), 0.5))}
	}
	cdf := b.Scale(b.Add(b.Op("Erf", []Value{b.Scale(x, math.Sqrt2/2)}), one), 0.5)
	pdf := b.Scale(b.Op("Exp", []Value{b.Scale(b.Mul(x, x), -0.5)}), 1/math.Sqrt(2*math.Pi))
	return []Value{b.Mul(dy[0], b.Add(cdf, b.Mul(x, pdf)))}
}
