package expand

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
	"github.com/gradhop/gradhop/onnx/shape"
)

// A recurrent node is written out in steps, forward too: the runtime's kernel does not
// return the gates, and to compute them again costs as much as the kernel takes. The
// steps replace the node. A cell is element-wise in its gates and the state before: its
// Jacobian is diagonal, and all steps' diagonals come from one backward pass over the
// cell, with ones for a seed. What remains of back-propagation through time (Werbos
// 1990) is a short recurrence per step; the products with the inputs, and the gradients
// of inputs and weights, are one product each for all steps.
//
// Activations may be any that the standard lists, with clipping; sequences of
// different lengths are masked; every output may have a gradient. The number of steps
// must be known.

// mostSteps bounds the steps that are written out: each takes about twenty nodes.
const mostSteps = 1 << 16

// recurrent is what LSTM, GRU and RNN have in common.
type recurrent struct {
	b      *build.Builder
	n      driver.Node
	steps  int64
	batch  shape.Dim
	hidden int64
	dirs   int
	elem   onnx.DataType
	x      driver.Value // [steps, batch, input]
	// mask is 1 where a step belongs to the text, [steps, batch, 1], or "" where all do.
	mask       driver.Value
	dy         driver.Value // the gradient of y, or ""
	dyh, dyc   driver.Value // those of the last states, [directions, batch, hidden], or ""
	activators [][]activator
}

// direction is one direction of a recurrent node.
type direction struct {
	*recurrent
	act       []activator
	reverse   bool
	w, r      driver.Value // [gates·hidden, input], [gates·hidden, hidden]
	wb, rb    driver.Value // [gates·hidden], or ""
	h0, c0    driver.Value // [1, batch, hidden]
	y         driver.Value // [steps, batch, hidden]
	before    driver.Value // the states one step earlier, [steps, batch, hidden]
	h, c      driver.Value // the last states, [1, batch, hidden]
	dy        []driver.Value
	dh, dc    driver.Value // gradients that come from behind the last step, or ""
	peepholes []driver.Value
}

// recurrentGrads are the gradients of one direction.
type recurrentGrads struct {
	dzx, dzh driver.Value // of the gates, as the input and as the state contribute to them
	dh0, dc0 driver.Value
	dr       driver.Value // of r, where it is not dzhᵀ·before
	dp       driver.Value
}

// RecurrentRule returns a rule: cell does one direction.
func RecurrentRule(activations []string, cell func(d *direction) recurrentGrads) driver.Rule {
	return func(b *build.Builder, n driver.Node, dy []driver.Value) []driver.Value {
		if driver.BatchFirst(n.Node) {
			all := driver.ExpandBatchFirst(b, n.Node)
			var outs, seeds []driver.Value
			for i, d := range dy {
				if d != "" && all != nil {
					outs, seeds = append(outs, all[i]), append(seeds, d)
				}
			}
			return driver.Nested(b, n, outs, seeds)
		}
		since := len(b.Model().Graph.Nodes)
		r := readRecurrent(b, n, dy, activations)
		if r == nil || b.Err() != nil {
			return nil
		}
		parts := make([]recurrentGrads, r.dirs)
		ds := make([]*direction, r.dirs)
		for i := range parts {
			ds[i] = r.direction(i)
			if b.Err() != nil {
				return nil
			}
			parts[i] = cell(ds[i])
		}
		if b.Err() != nil {
			return nil
		}
		dx := r.collect(ds, parts)
		b.Replace(n.Node, since, r.outputs(ds))
		return dx
	}
}

// readRecurrent reads shapes and attributes; nil after an error.
func readRecurrent(b *build.Builder, n driver.Node, dy []driver.Value, defaults []string) *recurrent {
	r := &recurrent{b: b, n: n, dirs: 1, x: n.In(0), elem: b.Info(n.In(0)).Type}
	s, ok := b.Shape(r.x)
	sr, okR := b.Shape(n.In(2))
	if !ok || !okR || len(s) != 3 || len(sr) != 3 {
		b.Fail(driver.BadShape(n.Label(), r.x, rankString(s, ok), "[steps, batch, input]"))
		return nil
	}
	r.batch = s[1]
	if r.steps, ok = s[0].Const(); !ok || r.steps < 1 {
		b.Fail(driver.BadShape(n.Label(), n.In(0), shape.String(s), "a number of steps"))
		return nil
	}
	if r.steps > mostSteps {
		driver.Refuse(b, n.Node, "%d steps are too many to be written out one by one", r.steps)
		return nil
	}
	if r.hidden, ok = sr[2].Const(); !ok {
		r.hidden = n.Int("hidden_size", 0)
	}
	if n.Str("direction", "forward") == "bidirectional" {
		r.dirs = 2
	}
	if r.activators = readActivators(n.Node, r.dirs, defaults); r.activators == nil {
		driver.Refuse(b, n.Node, "its activations are not all known")
		return nil
	}
	if lens := n.In(4); lens != "" {
		at := make([]int32, r.steps)
		for i := range at {
			at[i] = int32(i)
		}
		keep := b.Op("Less", []driver.Value{b.Const(onnx.NewInt32("", []int64{r.steps, 1}, at)), b.Unsqueeze(lens, 0)})
		r.mask = b.Unsqueeze(b.Cast(keep, r.elem), 2)
	}
	get := func(i int) driver.Value {
		if i < len(dy) {
			return dy[i]
		}
		return ""
	}
	r.dy, r.dyh, r.dyc = get(0), get(1), get(2)
	return r
}

// pick returns the part of v that belongs to direction i, without the axis.
func (r *recurrent) pick(v driver.Value, axis int64, i int) driver.Value {
	if v == "" {
		return ""
	}
	if r.dirs == 1 {
		return r.b.Squeeze(v, axis)
	}
	return r.b.Gather(v, index(r.b, int64(i)), axis)
}

// state returns an initial state of direction i as [1, batch, hidden].
func (r *recurrent) state(v driver.Value, i int) driver.Value {
	if v == "" {
		return r.b.Zeros([]shape.Dim{shape.D(1), r.batch, shape.D(r.hidden)}, r.elem, r.x)
	}
	if r.dirs == 1 {
		return v
	}
	return r.b.Unsqueeze(r.pick(v, 0, i), 0)
}
