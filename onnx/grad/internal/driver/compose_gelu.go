package driver

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// The kinds of mark that Compose leaves.
const (
	MarkNormalised = "normalised" // Values: x, 1/σ; the marked value is x̂
	markGelu       = "gelu"       // Values: x, x/√2, 1+erf(x/√2)
)

// composites maps a kind of mark to the gradient of the marked value y with respect
// to Values[0], given dy.
var composites = map[string]func(b *build.Builder, y Value, m build.Mark, dy Value) Value{
	// dx = (dy - mean dy - x̂·mean(dy·x̂))/σ
	MarkNormalised: func(b *build.Builder, y Value, m build.Mark, dy Value) Value {
		return LayerNormBackward(b, dy, y, m.Values[1], m.Axes)
	},
	// With s = x/√2: dx = dy·½·(1 + erf s + s·exp(log(2/√π) - s²)). Each operator here
	// is a pass over the widest tensors of a network, so factors are put where they cost
	// none: 2/√π in the exponent, the ½ beside dy, where a runtime folds it into the
	// matrix product that made dy.
	markGelu: func(b *build.Builder, _ Value, m build.Mark, dy Value) Value {
		s, p := m.Values[1], m.Values[2]
		bell := b.Op("Exp", []Value{b.Sub(b.Scalar(math.Log(TwoOverSqrtPi), s), b.Mul(s, s))})
		slope := b.Add(p, b.Mul(s, bell))
		return b.Mul(b.Scale(dy, 0.5), slope)
	},
}

// gelu appends y = ½·x·(1 + erf(x/√2)) and marks it.
func (c *composer) gelu(x, y Value) {
	if !c.usable(x) {
		c.out = append(c.out, c.writer[y])
		return
	}
	name := c.folder(y)
	s := c.emit("Mul", name+"/s", []Value{x, c.constant(name+"/half_root", math.Sqrt2/2, x)})
	p := c.emit("Add", name+"/p", []Value{c.emit("Erf", name+"/erf", []Value{s}), c.constant(name+"/one", 1, x)})
	xp := c.emit("Mul", name+"/xp", []Value{x, p})
	c.emit("Mul", y, []Value{xp, c.constant(name+"/half", 0.5, x)})
	c.marks[y] = build.Mark{Kind: markGelu, Values: []Value{x, s, p}}
}

// decomposedGelu recognises, in either order of each product,
//
//	Mul(Mul(x, Add(Erf(Div(x, √2)), 1)), ½) and Mul(x, Mul(½, Add(Erf(Div(x, √2)), 1)))
//
// and returns x. Products with 1/√2 count as quotients.
func (c *composer) decomposedGelu(n *onnx.Node) (Value, bool) {
	for i := range 2 {
		inner := c.writer[n.Inputs[1-i]]
		if inner == nil || inner.Op != "Mul" || inner.Domain != "" {
			continue
		}
		for j := range 2 {
			a, other := inner.Inputs[j], inner.Inputs[1-j]
			x, half := n.Inputs[i], a // Mul(x, Mul(½, 1+erf))
			if c.scalar(n.Inputs[i]) == 0.5 {
				x, half = a, n.Inputs[i] // Mul(½, Mul(x, 1+erf))
			}
			if c.scalar(half) == 0.5 && c.onePlusErf(other) == x && x != "" {
				return x, true
			}
		}
	}
	return "", false
}

// onePlusErf returns x where v is 1 + erf(x/√2), or "".
func (c *composer) onePlusErf(v Value) Value {
	add := c.writer[v]
	if add == nil || add.Op != "Add" {
		return ""
	}
	for i := range 2 {
		erf := c.writer[add.Inputs[i]]
		if erf == nil || erf.Op != "Erf" || c.scalar(add.Inputs[1-i]) != 1 {
			continue
		}
		arg := c.writer[erf.Inputs[0]]
		switch {
		case arg == nil:
		case arg.Op == "Div" && near(c.scalar(arg.Inputs[1]), math.Sqrt2):
			return arg.Inputs[0]
		case arg.Op == "Mul" && near(c.scalar(arg.Inputs[1]), math.Sqrt2/2):
			return arg.Inputs[0]
		case arg.Op == "Mul" && near(c.scalar(arg.Inputs[0]), math.Sqrt2/2):
			return arg.Inputs[1]
		}
	}
	return ""
}

// near tells equality up to the rounding of a float32 constant.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
