package driver

import (
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// Values of a mark of a swish y = x·sigmoid(αx): x, s = sigmoid(αx), αx·s.
const markSwish = "swish"

func init() {
	// dx = dy·(s + αx·s·(1-s))
	composites[markSwish] = func(b *build.Builder, _ Value, m build.Mark, dy Value) Value {
		s, t := m.Values[1], m.Values[2]
		return b.Mul(dy, b.Add(s, b.Mul(t, b.Sub(b.Scalar(1, s), s))))
	}
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
// Mul(x, Sigmoid(Mul(x, α))), and returns x and α. For an α so far from one that αx or
// 1/α would leave the range of floats there are rules of the parts.
func (c *composer) decomposedSwish(n *onnx.Node) (x Value, alpha float64, ok bool) {
	for i := range 2 {
		x, s := n.Inputs[i], c.writer[n.Inputs[1-i]]
		if s == nil || s.Op != "Sigmoid" || s.Domain != "" || !c.usable(x) {
			continue
		}
		alpha := 1.0
		if arg := c.writer[s.Inputs[0]]; s.Inputs[0] != x {
			if arg == nil || arg.Op != "Mul" || arg.Domain != "" || !slices.Contains(arg.Inputs, x) {
				continue
			}
			k := 1 - slices.Index(arg.Inputs, x)
			alpha = c.scalar(arg.Inputs[k])
			if c.vals[arg.Inputs[k]].Rank() > c.vals[x].Rank() {
				continue // which gives the product more dimensions than x has
			}
		}
		if a := math.Abs(alpha); a > 1e-3 && a < 1e3 {
			return x, alpha, true
		}
	}
	return "", 0, false
}
