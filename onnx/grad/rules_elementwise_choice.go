package grad

import "github.com/gradhop/gradhop/onnx/build"

// Operators that choose among their inputs. Where a choice is a tie, those that tie
// share the gradient equally, as torch does; at a bound of Clip the number itself gets
// it.

// y = max or min of the inputs: those equal to y share dy.
func ruleExtremum(b *build.Builder, n Node, dy []Value) []Value {
	dx := make([]Value, len(n.Inputs))
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
				dx[i] = pick(b, b.Op(better, []Value{n.In(i), n.In(1 - i)}), dy[0], half)
			}
		}
		return dx
	}
	var count Value
	best := make([]Value, len(dx))
	for i, x := range n.Inputs {
		best[i] = b.Op("Equal", []Value{x, n.Out(0)})
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

// y = min(max(x, low), high): dx = dy where low ≤ x ≤ high; d low = Σ dy where x < low
// ≤ high; d high = Σ dy where x > high or low > high. Bounds may be left out.
func ruleClip(b *build.Builder, n Node, dy []Value) []Value {
	x, low, high := n.In(0), n.In(1), n.In(2)
	dx := make([]Value, 3)
	both := func(op string, conds ...Value) Value {
		var all Value
		for _, c := range conds {
			switch {
			case all == "":
				all = c
			case c != "":
				all = b.Op(op, []Value{all, c})
			}
		}
		return all
	}
	test := func(op string, v, bound Value) Value {
		if v == "" || bound == "" {
			return ""
		}
		return b.Op(op, []Value{v, bound})
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

// y = a - k·b for an integer k: da = dy, db = -dy·k
func ruleMod(b *build.Builder, n Node, dy []Value) []Value {
	dx := []Value{dy[0], ""}
	if n.Need(1) {
		k := b.Op("Round", []Value{b.Div(b.Sub(n.In(0), n.Out(0)), n.In(1))})
		dx[1] = b.Neg(b.Mul(dy[0], k))
	}
	return dx
}
