package driver

import (
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Values of a mark of a swish y = x·sigmoid(αx): x, s = sigmoid(αx), αx·s, or, where α is
// a tensor, x, s, α.
const markSwish, markSloped = "swish", "sloped swish"

func init() {
	// dx = dy·(s + αx·s·(1-s))
	composites[markSwish] = func(b *build.Builder, _ Value, m build.Mark, dy Value) Value {
		s, t := m.Values[1], m.Values[2]
		return b.Mul(dy, b.Add(s, b.Mul(t, b.Sub(b.Scalar(1, s), s))))
	}
	// dx = dy·(s + α·(y - y·s)), two products fewer than the rules of the parts. It leaves out
	// dα, so the driver takes it only where α is a constant.
	composites[markSloped] = func(b *build.Builder, y Value, m build.Mark, dy Value) Value {
		s, alpha := m.Values[1], m.Values[2]
		return b.Mul(dy, b.Add(s, b.Mul(less(b, y, b.Mul(y, s)), alpha)))
	}
}

// less returns x - y. For images in float32 it is x + (-1)·y with a factor a channel: the
// runtime keeps images in its blocked layout through sums and products of such kinds, but
// not through Sub.
func less(b *build.Builder, x, y Value) Value {
	if dims, ok := b.Shape(x); ok && len(dims) == 4 && b.Info(x).Type == onnx.Float {
		if c, ok := dims[1].Const(); ok {
			minus := onnx.NewFloat("", []int64{c, 1, 1}, slices.Repeat([]float32{-1}, int(c)))
			return b.Add(b.Mul(y, b.Const(minus)), x)
		}
	}
	return b.Sub(x, y)
}

// swish appends y = x·sigmoid(αx) and marks it. It is written as αx·s/α: the quotient
// costs nothing where a runtime folds it into the matrix product that reads y, and the
// gradient needs αx·s, not y.
func (c *composer) swish(x, y Value, alpha float64) {
	name := c.folder(y)
	mark := build.Mark{Kind: markSwish, Values: []Value{x}}
	if alpha == 1 {
		s := c.emit("Sigmoid", name+"/s", []Value{x})
		c.emit("Mul", y, []Value{x, s})
		mark.Values = append(mark.Values, s, y)
	} else {
		scaled := c.emit("Mul", name+"/scaled", []Value{x, c.constant(name+"/alpha", alpha, x)})
		s := c.emit("Sigmoid", name+"/s", []Value{scaled})
		t := c.emit("Mul", name+"/t", []Value{scaled, s})
		c.emit("Mul", y, []Value{t, c.constant(name+"/inverse", 1/alpha, x)})
		mark.Values = append(mark.Values, s, t)
	}
	c.marks[y] = mark
}

// decomposedSwish recognises, in either order of each product, Mul(x, Sigmoid(x)) and
// Mul(x, Sigmoid(Mul(x, α))), where α does not give the product another shape than x has.
// It writes a swish whose α is a number anew, and marks others.
func (c *composer) decomposedSwish(n *onnx.Node) bool {
	y := n.Outputs[0]
	for i := range 2 {
		x, s := n.Inputs[i], c.writer[n.Inputs[1-i]]
		if s == nil || s.Op != "Sigmoid" || s.Domain != "" || !c.usable(x) {
			continue
		}
		if s.Inputs[0] == x {
			c.swish(x, y, 1)
			return true
		}
		arg := c.writer[s.Inputs[0]]
		if arg == nil || arg.Op != "Mul" || arg.Domain != "" || !slices.Contains(arg.Inputs, x) {
			continue
		}
		scaled, alpha := c.vals[s.Inputs[0]], arg.Inputs[1-slices.Index(arg.Inputs, x)]
		if scaled == nil || !scaled.Known || !shape.SameShape(scaled.Shape, c.vals[x].Shape) {
			continue
		}
		// Far from one, αx or 1/α would leave the range of floats.
		if a := c.scalar(alpha); math.Abs(a) > 1e-3 && math.Abs(a) < 1e3 {
			c.swish(x, y, a)
			return true
		}
		c.out = append(c.out, n)
		c.marks[y] = build.Mark{Kind: markSloped, Values: []Value{x, n.Inputs[1-i], alpha}}
		return true
	}
	return false
}
