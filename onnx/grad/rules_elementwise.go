package grad

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	standard(ruleIdentity, "Identity")
	standard(ruleAdd, "Add")
	standard(ruleSub, "Sub")
	standard(ruleMul, "Mul")
	standard(ruleDiv, "Div")
	standard(ruleNeg, "Neg")
	standard(rulePow, "Pow")
	standard(ruleCast, "Cast")
	standard(ruleWhere, "Where")
	standard(ruleDropout, "Dropout")
	standard(ruleSum, "Sum")
	standard(ruleMean, "Mean")
}

// y = x
func ruleIdentity(_ *onnx.Builder, _ Node, dy []Value) []Value { return dy[:1] }

// y = a + b: da = dy, db = dy
func ruleAdd(_ *onnx.Builder, _ Node, dy []Value) []Value { return []Value{dy[0], dy[0]} }

// y = a - b: da = dy, db = -dy
func ruleSub(b *onnx.Builder, n Node, dy []Value) []Value {
	dx := []Value{dy[0], ""}
	if n.Need(1) {
		dx[1] = b.Neg(dy[0])
	}
	return dx
}

// y = a·b: da = dy·b, db = dy·a
func ruleMul(b *onnx.Builder, n Node, dy []Value) []Value {
	dx := make([]Value, 2)
	for i := range dx {
		if n.Need(i) {
			dx[i] = b.Mul(dy[0], n.In(1-i))
		}
	}
	return dx
}

// y = a/b: da = dy/b, db = -dy·y/b
func ruleDiv(b *onnx.Builder, n Node, dy []Value) []Value {
	dx := make([]Value, 2)
	q := b.Div(dy[0], n.In(1))
	if n.Need(0) {
		dx[0] = q
	}
	if n.Need(1) {
		dx[1] = b.Neg(b.Mul(q, n.Out(0)))
	}
	return dx
}

// y = -x
func ruleNeg(b *onnx.Builder, _ Node, dy []Value) []Value { return []Value{b.Neg(dy[0])} }

// y = a^b: da = dy·b·a^(b-1), db = dy·y·log a (0 where a = 0). A constant exponent
// of 2 or 0.5 needs no power.
func rulePow(b *onnx.Builder, n Node, dy []Value) []Value {
	x, p := n.In(0), n.In(1)
	dx := make([]Value, 2)
	if n.Need(0) {
		k := b.Info(p).Floats
		if k == nil {
			for _, d := range b.Info(p).Ints {
				v, ok := d.Const()
				if !ok {
					k = nil
					break
				}
				k = append(k, float64(v))
			}
		}
		switch {
		case len(k) == 1 && k[0] == 2:
			dx[0] = b.Mul(dy[0], b.Scale(x, 2))
		case len(k) == 1 && k[0] == 0.5:
			dx[0] = b.Div(b.Scale(dy[0], 0.5), n.Out(0))
		case len(k) == 1:
			dx[0] = b.Mul(dy[0], b.Scale(b.Op("Pow", []Value{x, b.Scalar(k[0]-1, x)}), k[0]))
		default:
			p = b.Cast(p, b.Info(x).Type)
			low := b.Op("Pow", []Value{x, b.Sub(p, b.Scalar(1, x))})
			dx[0] = b.Mul(dy[0], b.Mul(p, low))
		}
	}
	if n.Need(1) {
		zero := b.Op("Equal", []Value{x, b.Scalar(0, x)})
		safe := b.Op("Where", []Value{zero, b.Scalar(1, x), x})
		dx[1] = b.Mul(dy[0], b.Mul(n.Out(0), b.Op("Log", []Value{safe})))
	}
	return dx
}

// Cast between floating-point types passes the gradient, in the input's type.
func ruleCast(b *onnx.Builder, n Node, dy []Value) []Value {
	return []Value{b.Cast(dy[0], b.Info(n.In(0)).Type)}
}

// y = c ? a : b
func ruleWhere(b *onnx.Builder, n Node, dy []Value) []Value {
	zero := b.Scalar(0, dy[0])
	dx := make([]Value, 3)
	if n.Need(1) {
		dx[1] = b.Op("Where", []Value{n.In(0), dy[0], zero})
	}
	if n.Need(2) {
		dx[2] = b.Op("Where", []Value{n.In(0), zero, dy[0]})
	}
	return dx
}

// Dropout at inference is the identity.
func ruleDropout(b *onnx.Builder, n Node, dy []Value) []Value {
	if t := b.Info(n.In(2)).Ints; n.In(2) != "" && !(len(t) == 1 && t[0].Is(0)) {
		b.Fail(&TrainingError{Node: n.Label()})
	}
	return dy[:1]
}

// y = Σ inputs
func ruleSum(_ *onnx.Builder, n Node, dy []Value) []Value {
	dx := make([]Value, len(n.Inputs))
	for i := range dx {
		dx[i] = dy[0]
	}
	return dx
}

// y = Σ inputs / their number
func ruleMean(b *onnx.Builder, n Node, dy []Value) []Value {
	d := b.Scale(dy[0], 1/float64(len(n.Inputs)))
	dx := make([]Value, len(n.Inputs))
	for i := range dx {
		dx[i] = d
	}
	return dx
}

// twoOverSqrtPi is the derivative of erf at zero.
var twoOverSqrtPi = 2 / math.Sqrt(math.Pi)
