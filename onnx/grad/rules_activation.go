package grad

import (
	"github.com/gradhop/gradhop/onnx/build"
	"math"
)

// Functions of one number, y = f(x). Where the derivative is infinite (Sqrt, Log,
// Reciprocal at 0, Acos and Asin at ±1, Acosh at 1, Atanh at ±1) so is the gradient.

func init() {
	unary("Exp", func(b *build.Builder, _, y Value) Value { return y })
	unary("Log", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, x) })
	unary("Sqrt", func(b *build.Builder, _, y Value) Value { return b.Div(b.Scalar(0.5, y), y) })
	unary("Reciprocal", func(b *build.Builder, _, y Value) Value { return b.Neg(b.Mul(y, y)) })
	unary("Tanh", func(b *build.Builder, _, y Value) Value { return b.Sub(b.Scalar(1, y), b.Mul(y, y)) })
	unary("Sigmoid", func(b *build.Builder, _, y Value) Value { return b.Mul(y, b.Sub(b.Scalar(1, y), y)) })
	unary("Softplus", func(b *build.Builder, x, _ Value) Value { return b.Op("Sigmoid", []Value{x}) })
	unary("Sin", func(b *build.Builder, x, _ Value) Value { return b.Op("Cos", []Value{x}) })
	unary("Cos", func(b *build.Builder, x, _ Value) Value { return b.Neg(b.Op("Sin", []Value{x})) })
	unary("Tan", func(b *build.Builder, _, y Value) Value { return b.Add(b.Mul(y, y), b.Scalar(1, y)) })
	unary("Sinh", func(b *build.Builder, x, _ Value) Value { return b.Op("Cosh", []Value{x}) })
	unary("Cosh", func(b *build.Builder, x, _ Value) Value { return b.Op("Sinh", []Value{x}) })
	unary("Asin", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, oneMinusSquare(b, x)) })
	unary("Acos", func(b *build.Builder, x, _ Value) Value { return b.Neg(rootInverse(b, oneMinusSquare(b, x))) })
	unary("Atan", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, onePlusSquare(b, x)) })
	unary("Asinh", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, onePlusSquare(b, x)) })
	unary("Acosh", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, b.Neg(oneMinusSquare(b, x))) })
	unary("Atanh", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, oneMinusSquare(b, x)) })
	unary("Softsign", func(b *build.Builder, x, _ Value) Value { // (1+|x|)⁻²
		r := reciprocal(b, b.Add(b.Op("Abs", []Value{x}), b.Scalar(1, x)))
		return b.Mul(r, r)
	})
	unary("Erf", func(b *build.Builder, x, _ Value) Value {
		return b.Scale(b.Op("Exp", []Value{b.Neg(b.Mul(x, x))}), twoOverSqrtPi)
	})
	unary("Mish", func(b *build.Builder, x, _ Value) Value { // y = x·t, t = tanh(softplus x): t + x·(1-t²)·sigmoid x
		t := b.Op("Tanh", []Value{b.Op("Softplus", []Value{x})})
		dt := b.Mul(b.Sub(b.Scalar(1, x), b.Mul(t, t)), b.Op("Sigmoid", []Value{x}))
		return b.Add(t, b.Mul(x, dt))
	})
	standard(ruleGelu, "Gelu")
	Register("", "Swish", 24, ruleSwish)
}

// unary registers y = f(x) by its derivative, a function of x and y.
func unary(op string, derivative func(b *build.Builder, x, y Value) Value) {
	standard(func(b *build.Builder, n Node, dy []Value) []Value {
		return []Value{b.Mul(dy[0], derivative(b, n.In(0), n.Out(0)))}
	}, op)
}

func reciprocal(b *build.Builder, x Value) Value { return b.Op("Reciprocal", []Value{x}) }

// rootInverse returns 1/√x.
func rootInverse(b *build.Builder, x Value) Value {
	return reciprocal(b, b.Op("Sqrt", []Value{x}))
}

// oneMinusSquare returns 1 - x² as (1-x)·(1+x), which is exact near ±1.
func oneMinusSquare(b *build.Builder, x Value) Value {
	one := b.Scalar(1, x)
	return b.Mul(b.Sub(one, x), b.Add(x, one))
}

func onePlusSquare(b *build.Builder, x Value) Value {
	return b.Add(b.Mul(x, x), b.Scalar(1, x))
}

// ruleGelu: y = x·Φ(x) gives Φ(x) + x·φ(x); approximate="tanh" gives, with
// u = √(2/π)(x + 0.044715x³) and t = tanh u, ½(1+t) + ½x(1-t²)u'.
func ruleGelu(b *build.Builder, n Node, dy []Value) []Value {
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

// y = x·s, s = sigmoid(αx): dx = dy·(s + αy(1-s))
func ruleSwish(b *build.Builder, n Node, dy []Value) []Value {
	x, alpha := n.In(0), float64(n.Float("alpha", 1))
	s := b.Op("Sigmoid", []Value{b.Scale(x, alpha)})
	rest := b.Scale(b.Mul(n.Out(0), b.Sub(b.Scalar(1, x), s)), alpha)
	return []Value{b.Mul(dy[0], b.Add(s, rest))}
}
