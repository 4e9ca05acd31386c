package rules

import (
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
)

// Operators that choose among their inputs. Where a choice is a tie, those that tie
// share the gradient equally, as torch does; at a bound of Clip the number itself gets
// it.

// Extremum: y = max or min of the inputs: those equal to y share dy.
func Extremum(b *build.Builder, n driver.Node, dy []driver.Value) []driver.Value {
	dx := make([]driver.Value, len(n.Inputs))
	if len(dx) == 1 {
		return dy[:1]
	}
	if len(dx) == 2 {
		better := "Greater"
		if n.Op == "Min" {
			better = "Less"
		}
		half := pick(b, b.Op("Equal", n.Inputs), b.Scale(dy[0], 0.5), b.Scalar(0, dy[0]))
		for i := range dx {
			if n.Need(i) {
				dx[i] = pick(b, b.Op(better, []driver.Value{n.In(i), n.In(1 - i)}), dy[0], half)
			}
		}
		return dx
	}
	var count driver.Value
	best := make([]driver.Value, len(dx))
	for i, x := range n.Inputs {
		best[i] = b.Op("Equal", []driver.Value{x, n.Out(0)})
		one := b.Cast(best[i], b.Info(dy[0]).Type)
		if count == "" {
			count = one
		} else {
			count = b.Add(count, one)
		}
	}
	share := b.Div(dy[0], count)
	for i := range dx {
		if n.Need(i) {
			dx[i] = keep(b, best[i], share)
		}
	}
	return dx
}

// Clip: y = min(max(x, low), high): dx = dy where low ≤ x ≤ high; d low = Σ dy where x < low
// ≤ high; d high = Σ dy where x > high or low > high. Bounds may be left out.
func Clip(b *build.Builder, n driver.Node, dy []driver.Value) []driver.Value {
	x, low, high := n.In(0), n.In(1), n.In(2)
	dx := make([]driver.Value, 3)
	both := func(op string, conds ...driver.Value) driver.Value {
		var all driver.Value
		for _, c := range conds {
			switch {
			case all == "":
				all = c
			case c != "":
				all = b.Op(op, []driver.Value{all, c})
			}
		}
		return all
	}
	test := func(op string, v, bound driver.Value) driver.Value {
		if v == "" || bound == "" {
			return ""
		}
		return b.Op(op, []driver.Value{v, bound})
	}
	if n.Need(0) {
		dx[0] = dy[0]
		if inside := both("And", test("GreaterOrEqual", x, low), test("LessOrEqual", x, high)); inside != "" {
			dx[0] = keep(b, inside, dy[0])
		}
	}
	if n.Need(1) {
		dx[1] = keep(b, both("And", test("Less", x, low), test("LessOrEqual", low, high)), dy[0])
	}
	if n.Need(2) {
		dx[2] = keep(b, both("Or", test("Greater", x, high), test("Greater", low, high)), dy[0])
	}
	return dx[:len(n.Inputs)]
}

// Mod: y = a - k·b for an integer k: da = dy, db = -dy·k
func Mod(b *build.Builder, n driver.Node, dy []driver.Value) []driver.Value {
	dx := []driver.Value{dy[0], ""}
	if n.Need(1) {
		k := b.Op("Round", []driver.Value{b.Div(b.Sub(n.In(0), n.Out(0)), n.In(1))})
		dx[1] = b.Neg(b.Mul(dy[0], k))
	}
	return dx
}
