package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
	"slices"
)

// step returns the rows of the outputs of n, or nil if n mixes rows other than by attention.
func (r *continuing) step(n *onnx.Node) []*rowState {
	b := r.b
	var s *rowState
	first := r.states[n.In(0)]
	switch {
	case n.Domain == "" && n.Op == "MatMul":
		s = r.product(n)
	case n.Domain == "" && n.Op == "Gemm":
		if c := b.Info(n.In(2)); first != nil && first.axis == 0 && first.cols < 0 && n.Int("transA", 0) == 0 &&
			r.states[n.In(1)] == nil && r.states[n.In(2)] == nil && (n.In(2) == "" || c.Rank() >= 0 && (c.Rank() < 2 || c.Shape[0].Is(1))) {
			s = &rowState{axis: 0, outer: first.outer, inner: first.inner, cols: -1}
		}
	case n.Domain == "" && n.Op == "Softmax" && first != nil && first.cols >= 0:
		s = r.weights(n, first)
	case n.Domain == "" && (n.Op == "Split" || n.Op == "Slice"):
		return r.cut(n, first)
	case n.Domain == "" && slices.Contains([]string{"Reshape", "Flatten", "Squeeze", "Unsqueeze"}, n.Op):
		s = r.reshaped(n, first)
	case len(n.Outputs) == 1:
		if s = r.rowwise(n); s != nil && s.cols >= 0 && n.Op == "Add" {
			s.mask = r.masked(n, s)
		}
	}
	if s == nil {
		return nil
	}
	return []*rowState{s}
}

// product handles the product of rows and a matrix, of rows and rows (scores), or of attention weights
// and rows.
func (r *continuing) product(n *onnx.Node) *rowState {
	b := r.b
	x, w := r.states[n.In(0)], r.states[n.In(1)]
	y, rx, rw := b.Info(n.Out(0)).Rank(), b.Info(n.In(0)).Rank(), b.Info(n.In(1)).Rank()
	if x == nil || rx < 2 || rw < 2 || y < 2 {
		return nil
	}
	out := &rowState{axis: x.axis + y - rx, outer: x.outer, inner: x.inner, cols: -1}
	switch {
	case w == nil:
		if x.cols >= 0 || x.axis == rx-1 || rw > 2 {
			return nil
		}
	case !x.pure() || !w.pure() || x.axis != rx-2 || w.cols >= 0:
		return nil
	case x.cols < 0 && w.axis == rw-1:
		out.cols = y - 1
	case x.cols == rx-1 && x.sound && w.axis == rw-2:
	default:
		return nil
	}
	return out
}

// masked returns the mask that n, an Add with state s, adds to scores, or nil.
func (r *continuing) masked(n *onnx.Node, s *rowState) *RowMask {
	for i, v := range n.Inputs {
		m, known := r.b.Shape(v)
		if r.states[v] != nil || !known || r.states[n.Inputs[1-i]] == nil {
			continue
		}
		mask := &RowMask{Of: v, Row: -1, Column: -1}
		less := r.b.Info(n.Out(0)).Rank() - len(m)
		if k := s.axis - less; k >= 0 && !m[k].Is(1) {
			mask.Row = k
		}
		if k := s.cols - less; k >= 0 && !m[k].Is(1) {
			mask.Column = k
		}
		return mask
	}
	return nil
}

// weights handles a Softmax over the columns of masked scores.
func (r *continuing) weights(n *onnx.Node, x *rowState) *rowState {
	a, err := shape.Axis(n.Int("axis", softmaxAxis(r.b.Opset())), r.b.Info(n.In(0)).Rank())
	if err != nil || r.b.Opset() < 13 || a != x.cols || x.mask == nil {
		return nil
	}
	if !slices.Contains(r.out.Masks, *x.mask) {
		r.out.Masks = append(r.out.Masks, *x.mask)
	}
	return &rowState{axis: x.axis, outer: x.outer, inner: x.inner, cols: x.cols, sound: true}
}

// cut handles operators that split an axis other than that of the rows.
func (r *continuing) cut(n *onnx.Node, x *rowState) []*rowState {
	rank := r.b.Info(n.In(0)).Rank()
	if x == nil || slices.ContainsFunc(n.Inputs[1:], func(v build.Value) bool { return r.states[v] != nil }) {
		return nil
	}
	var axes []int64
	if n.Op == "Split" {
		axes = []int64{n.Int("axis", 0)}
	} else {
		info := r.b.Info(n.In(3))
		list, ok := shape.ConstInts(info)
		if n.In(3) == "" || !ok {
			return nil
		}
		axes = list
	}
	for _, v := range axes {
		if a, err := shape.Axis(v, rank); err != nil || a == x.axis || a == x.cols {
			return nil
		}
	}
	out := make([]*rowState, len(n.Outputs))
	for i := range out {
		out[i] = &rowState{axis: x.axis, outer: x.outer, inner: x.inner, cols: x.cols}
	}
	return out
}

// reshaped returns the axis of the rows after a reshape. The product of the dimensions before the rows
// must not change.
func (r *continuing) reshaped(n *onnx.Node, x *rowState) *rowState {
	have, known := r.b.Shape(n.In(0))
	to, ok := r.b.Shape(n.Out(0))
	if x == nil || !known || !ok {
		return nil
	}
	before := shape.Product(have[:x.axis]).Mul(x.outer)
	for k, d := range to {
		outer, ok := exactQuo(before, shape.Product(to[:k]))
		if !ok {
			continue
		}
		inner, ok := exactQuo(d, outer.Mul(r.k.Rows))
		if !ok {
			continue
		}
		s := &rowState{axis: k, outer: outer, inner: inner, cols: -1, mask: x.mask, sound: x.sound}
		if x.cols >= 0 {
			for c := range to {
				if c != k && sameAxis(have, to, c) == x.cols {
					s.cols = c
				}
			}
			if s.cols < 0 {
				return nil
			}
		}
		return s
	}
	return nil
}

// rowwise handles operators that treat every row separately.
func (r *continuing) rowwise(n *onnx.Node) *rowState {
	b := r.b
	y, known := b.Shape(n.Out(0))
	if !known {
		return nil
	}
	var s *rowState
	for out := range y {
		axes, ok := rowAxes(b, n, out)
		if !ok {
			continue
		}
		fits := r.along(n, axes, func(x *rowState) int { return x.axis })
		if fits == nil {
			continue
		}
		s = &rowState{axis: out, outer: fits.outer, inner: fits.inner, cols: -1}
		for i, a := range axes {
			if x, _ := b.Shape(n.Inputs[i]); r.states[n.Inputs[i]] == nil && a >= 0 && (!rowWise[n.Op] || !s.pure() || !x[a].Equal(r.k.Rows)) {
				return nil
			}
		}
		break
	}
	if s == nil || !slices.ContainsFunc(n.Inputs, func(v build.Value) bool { return r.states[v] != nil && r.states[v].cols >= 0 }) {
		return s
	}
	for out := range y {
		if axes, ok := rowAxes(b, n, out); ok && out != s.axis && r.along(n, axes, func(x *rowState) int { return x.cols }) != nil {
			s.cols = out
			return s
		}
	}
	return nil
}

// along reports whether all inputs with rows have them on the same axis of the output, and returns the
// state of one of them. An input without columns broadcasts.
func (r *continuing) along(n *onnx.Node, axes []int, of func(*rowState) int) *rowState {
	var found *rowState
	for i, a := range axes {
		x := r.states[n.Inputs[i]]
		switch {
		case x == nil:
		case of(x) != a:
			return nil
		case found == nil:
			found = x
		case !x.outer.Equal(found.outer) || !x.inner.Equal(found.inner):
			return nil
		}
		if x != nil && a >= 0 {
			found = x
		}
	}
	return found
}
