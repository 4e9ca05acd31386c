package grad

import "github.com/gradhop/gradhop/onnx/build"

// Functions of one number that are put together from pieces. At a kink the rule
// takes the derivative of one piece, as torch does: 0 for Relu, Abs and the ends of
// HardSigmoid at their kinks; the piece that the standard's definition uses there for
// the others. A piece that overflows where it is not used is computed at 0 there, so
// that no 0·∞ arises, in the gradient of the gradient either.

// compare calls Less, Greater and the like with the number k.
func compare(b *build.Builder, op string, x Value, k float64) Value {
	return b.Op(op, []Value{x, b.Scalar(k, x)})
}

// pick returns cond ? yes : no.
func pick(b *build.Builder, cond, yes, no Value) Value {
	return b.Op("Where", []Value{cond, yes, no})
}

// keep returns d where cond holds and 0 elsewhere.
func keep(b *build.Builder, cond, d Value) Value { return pick(b, cond, d, b.Scalar(0, d)) }

// negative returns the part of x below zero.
func negative(b *build.Builder, x Value) Value { return keep(b, compare(b, "Less", x, 0), x) }

// y = x < 0 ? αx : x
func ruleLeakyRelu(b *build.Builder, n Node, dy []Value) []Value {
	below := compare(b, "Less", n.In(0), 0)
	return []Value{pick(b, below, b.Scale(dy[0], float64(n.Float("alpha", 0.01))), dy[0])}
}

// y = x < 0 ? s·x : x: ds = dy·x where x < 0
func rulePRelu(b *build.Builder, n Node, dy []Value) []Value {
	x := n.In(0)
	dx := make([]Value, 2)
	if n.Need(0) {
		dx[0] = pick(b, compare(b, "Less", x, 0), b.Mul(dy[0], n.In(1)), dy[0])
	}
	if n.Need(1) {
		dx[1] = b.Mul(dy[0], negative(b, x))
	}
	return dx
}

// belowZero returns dy·k·exp(x/a) where x < 0 (or x ≤ 0, where op says so) and
// dy·above elsewhere.
func belowZero(b *build.Builder, op string, x, dy Value, k, a, above float64) Value {
	below := compare(b, op, x, 0)
	e := b.Op("Exp", []Value{b.Scale(keep(b, below, x), 1/a)})
	return b.Mul(dy, pick(b, below, b.Scale(e, k), b.Scalar(above, x)))
}

// y = x < 0 ? α(eˣ-1) : x
func ruleElu(b *build.Builder, n Node, dy []Value) []Value {
	return []Value{belowZero(b, "Less", n.In(0), dy[0], float64(n.Float("alpha", 1)), 1, 1)}
}

// y = γ(x ≤ 0 ? αeˣ-α : x)
func ruleSelu(b *build.Builder, n Node, dy []Value) []Value {
	alpha, gamma := float64(n.Float("alpha", 1.67326319217681884765625)), float64(n.Float("gamma", 1.05070102214813232421875))
	return []Value{belowZero(b, "LessOrEqual", n.In(0), dy[0], alpha*gamma, 1, gamma)}
}

// y = max(0, x) + min(0, α(exp(x/α)-1))
func ruleCelu(b *build.Builder, n Node, dy []Value) []Value {
	return []Value{belowZero(b, "Less", n.In(0), dy[0], 1, float64(n.Float("alpha", 1)), 1)}
}

// y = x > α ? x : 0
func ruleThresholdedRelu(b *build.Builder, n Node, dy []Value) []Value {
	return []Value{keep(b, compare(b, "Greater", n.In(0), float64(n.Float("alpha", 1))), dy[0])}
}

// y = max(0, min(1, αx + β))
func ruleHardSigmoid(b *build.Builder, n Node, dy []Value) []Value {
	y := n.Out(0)
	inside := b.Op("And", []Value{compare(b, "Greater", y, 0), compare(b, "Less", y, 1)})
	return []Value{keep(b, inside, b.Scale(dy[0], float64(n.Float("alpha", 0.2))))}
}

// y = x·max(0, min(1, x/6 + ½)): 0 up to -3, 1 from 3 on, x/3 + ½ between
func ruleHardSwish(b *build.Builder, n Node, dy []Value) []Value {
	x := n.In(0)
	slope := b.Add(b.Scale(x, 1.0/3), b.Scalar(0.5, x))
	from := pick(b, compare(b, "Less", x, 3), slope, b.Scalar(1, x))
	return []Value{b.Mul(dy[0], keep(b, compare(b, "Greater", x, -3), from))}
}

// y = x + bias below -λ, x - bias above λ, 0 between
func ruleShrink(b *build.Builder, n Node, dy []Value) []Value {
	lambda := float64(n.Float("lambd", 0.5))
	out := b.Op("Or", []Value{compare(b, "Less", n.In(0), -lambda), compare(b, "Greater", n.In(0), lambda)})
	return []Value{keep(b, out, dy[0])}
}
