package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
	"slices"
)

// KnownRows describes a value whose first (early) rows are constant while its last (late) rows change,
// such as a fixed text prefix with many continuations. Rows are the entries along one axis. This holds
// for every value of the graph whose rows derive from those of From.
type KnownRows struct {
	// From is the value whose late rows change: [..., rows, ...], or [..., batch·rows, ...] if batch
	// and rows share an axis. Axis is that axis.
	From build.Value
	Axis int
	// Rows is the number of rows. Outer is the product of the dimensions before the rows within the
	// shared axis, 1 if there are none.
	Rows, Outer shape.Dim
	// Next replaces From: it holds From at the late rows. Late holds their indices, int64 [late]. Early
	// holds the indices of the early rows, int64 [early].
	Next, Late, Early build.Value
	// Varies lists values that change: only their shapes may be read. Everything else that the rows
	// depend on is constant.
	Varies []build.Value
	// Prefix is the prefix of the names of the inputs for cached rows.
	Prefix string
}

// Continued is the result of [ContinueRows].
type Continued struct {
	// Rows is the value at the late rows.
	Rows build.Value
	// Kept lists the values whose early rows must be supplied as inputs.
	Kept []KeptRows
	// Masks lists the values added to scores before a Softmax. The result is correct if the masks give
	// early rows zero weight on late columns and, if the late rows are not all following rows, give
	// late rows zero weight on later columns.
	Masks []RowMask
}

// KeptRows is a value whose early rows are fed as Input. The input has the shape of the value with the
// number of early rows along Axis.
type KeptRows struct {
	Of, Input build.Value
	Axis      int
}

// RowMask is a value added to scores, with its axes for rows and for columns (the rows attended to); -1
// if the mask does not vary along it.
type RowMask struct {
	Of          build.Value
	Row, Column int
}

// ContinueRows appends nodes that compute only the late rows of to. Rows may interact only through
// products with the weights of a masked Softmax, as in attention; there, the early rows become inputs
// and are concatenated with the late rows. ok is false if another operator mixes rows; the appended
// nodes are then useless. ContinueRows does not check the values of the masks.
func ContinueRows(b *build.Builder, to build.Value, k KnownRows) (c *Continued, ok bool) {
	r := &continuing{b: b, k: k, states: map[build.Value]*rowState{}, tainted: map[build.Value]bool{}, uses: map[build.Value]int{},
		done: map[rowVersion]build.Value{}, sizes: map[build.Value]build.Value{}, kept: map[build.Value]*KeptRows{}, out: &Continued{}}
	if b.Err() != nil || !r.plan(to) {
		return nil, false
	}
	early, _ := b.Shape(k.Early)
	late, _ := b.Shape(k.Late)
	if len(early) != 1 || len(late) != 1 {
		return nil, false
	}
	r.early, r.late = early[0], late[0]
	r.seen = b.Op("Concat", []build.Value{k.Early, k.Late}, onnx.IntAttr("axis", 0))
	r.done[rowVersion{k.From, false}] = k.Next
	r.out.Rows = r.version(to, false)
	substitute(b.Model().Graph, r.sizes)
	return r.out, !r.failed && b.Err() == nil
}

// rowState locates the rows of a value: an axis of outer·rows·inner entries, where entry (o·rows +
// t)·inner + i belongs to row t.
type rowState struct {
	axis         int
	outer, inner shape.Dim
	cols         int      // in scores, the axis of the rows attended to, else -1
	mask         *RowMask // last mask added to scores
	sound        bool     // weights: scores after a masked Softmax
}

func (s *rowState) pure() bool { return s.outer.Is(1) && s.inner.Is(1) }

// rowVersion is a value at its late rows or, if seen, at early and late rows.
type rowVersion struct {
	of   build.Value
	seen bool
}

type continuing struct {
	b       *build.Builder
	k       KnownRows
	states  map[build.Value]*rowState
	tainted map[build.Value]bool // depends on Varies
	uses    map[build.Value]int  // number of readers with rows
	done    map[rowVersion]build.Value
	sizes   map[build.Value]build.Value // shapes of values with rows, recomputed from Varies
	kept    map[build.Value]*KeptRows
	out     *Continued
	failed  bool

	early, late shape.Dim
	seen        build.Value // indices of early and late rows
}

// plan determines the rows of every value that to depends on. It reports false if it cannot.
func (r *continuing) plan(to build.Value) bool {
	b := r.b
	need := map[build.Value]bool{to: true}
	nodes := slices.Clone(b.Model().Graph.Nodes)
	for _, n := range slices.Backward(nodes) {
		if n.Op != "Shape" && slices.ContainsFunc(n.Outputs, func(v build.Value) bool { return need[v] }) {
			for _, v := range n.Inputs {
				need[v] = true
			}
			n.Captured(func(v string) string { need[v] = true; return v })
		}
	}
	from := &rowState{axis: r.k.Axis, outer: r.k.Outer, cols: -1}
	shape, known := b.Shape(r.k.From)
	if !known || r.k.Axis >= len(shape) {
		return false
	}
	if from.inner, known = exactQuo(shape[r.k.Axis], r.k.Outer.Mul(r.k.Rows)); !known {
		return false
	}
	r.states[r.k.From] = from
	for _, v := range r.k.Varies {
		r.tainted[v] = true
	}
	changes := map[build.Value]bool{r.k.From: true} // also values that to does not need
	for _, n := range nodes {
		switch {
		case n.Op == "Shape" && n.Domain == "":
			if changes[n.In(0)] {
				r.size(n)
			}
			continue
		case n.Out(0) == r.k.From:
			continue
		}
		in := slices.Clone(n.Inputs)
		n.Captured(func(v string) string { in = append(in, v); return v })
		rows, lost := false, false // lost: rows are read other than by inputs
		for _, v := range in {
			rows, lost = rows || changes[v], lost || changes[v] && r.states[v] == nil
			for _, o := range n.Outputs {
				changes[o] = changes[o] || changes[v]
				r.tainted[o] = r.tainted[o] || r.tainted[v]
			}
		}
		if !rows || !slices.ContainsFunc(n.Outputs, func(v build.Value) bool { return need[v] }) {
			continue
		}
		if lost || len(in) > len(n.Inputs) {
			return false
		}
		out := r.step(n)
		if out == nil {
			return false
		}
		for i, o := range n.Outputs {
			r.states[o] = out[i]
			if r.tainted[o] {
				return false
			}
		}
		for _, v := range n.Inputs {
			r.uses[v]++
		}
	}
	return r.states[to] != nil && r.states[to].pure()
}

// size computes the full shape of a value with rows without computing the value.
func (r *continuing) size(n *onnx.Node) {
	b := r.b
	dims := b.Info(n.Out(0)).Ints
	if dims == nil {
		return
	}
	for _, d := range dims {
		_, number := d.Const()
		if !number && !slices.ContainsFunc(r.k.Varies, func(v build.Value) bool {
			shape, _ := b.Shape(v)
			return slices.ContainsFunc(shape, d.Equal)
		}) {
			return
		}
	}
	r.sizes[n.Out(0)] = b.DynamicShape(dims, r.k.Varies...)
}

// exactQuo returns d / e if e divides d.
func exactQuo(d, e shape.Dim) (shape.Dim, bool) {
	q, ok := d.Quo(e)
	return q, ok && q.Mul(e).Equal(d)
}

// version returns v at its late rows or, if seen, at early and late rows.
func (r *continuing) version(v build.Value, seen bool) build.Value {
	key := rowVersion{v, seen}
	if to, ok := r.done[key]; ok || r.failed {
		return to
	}
	b, n := r.b, r.b.Writer(v)
	switch k := r.kept[v]; {
	case seen && k != nil:
		y := b.Op("Concat", []build.Value{k.Input, r.version(v, false)}, onnx.IntAttr("axis", int64(k.Axis)))
		r.done[key] = b.Refine(y, r.shape(v, true))
		return r.done[key]
	case n == nil || v == r.k.From:
		r.failed = true
		return ""
	}
	in := slices.Clone(n.Inputs)
	for i, x := range in {
		switch {
		case x == "":
		case r.states[x] == nil:
			in[i] = r.known(n, i, seen)
		case n.Op == "MatMul" && i == 1: // rows attended to
			in[i] = r.whole(x)
		default:
			in[i] = r.version(x, seen)
		}
	}
	if r.failed || b.Err() != nil {
		return ""
	}
	for i, y := range r.again(n, in, seen) {
		r.done[rowVersion{n.Outputs[i], seen}] = y
	}
	return r.done[key]
}

// again appends a copy of n that computes other rows.
func (r *continuing) again(n *onnx.Node, in []build.Value, seen bool) []build.Value {
	b := r.b
	to := r.shape(n.Outputs[0], seen)
	switch n.Op {
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return []build.Value{b.ReshapeTo(in[0], to, in[0], r.k.Next, r.k.Late, r.seen)}
	case "Expand":
		return []build.Value{b.Expand(in[0], b.DynamicShape(to, in[0], r.k.Next, r.k.Late, r.seen))}
	}
	return b.OpN(n.Domain, n.Op, len(n.Outputs), in, n.Attrs...)
}

// shape returns the shape of v at its late rows or, if seen, at early and late rows.
func (r *continuing) shape(v build.Value, seen bool) []shape.Dim {
	shape, _ := r.b.Shape(v)
	to, s := slices.Clone(shape), r.states[v]
	count := r.late
	if seen {
		count = count.Add(r.early)
	}
	to[s.axis] = s.outer.Mul(count).Mul(s.inner)
	if s.cols >= 0 {
		to[s.cols] = r.early.Add(r.late)
	}
	return to
}

// known returns input i of n, which has no rows, restricted to the rows of the output.
func (r *continuing) known(n *onnx.Node, i int, seen bool) build.Value {
	b, v := r.b, n.Inputs[i]
	s := r.states[n.Outputs[0]]
	if !rowWise[n.Op] {
		return v
	}
	x, _ := b.Shape(v)
	y, _ := b.Shape(n.Outputs[0])
	less := len(y) - len(x)
	if a := s.cols - less; s.cols >= 0 && a >= 0 && !x[a].Is(1) {
		v = b.Gather(v, r.seen, int64(a))
	}
	if a := s.axis - less; a >= 0 && !x[a].Is(1) {
		if index := r.k.Late; s.pure() {
			if seen {
				index = r.seen
			}
			return b.Gather(v, index, int64(a))
		}
		r.failed = true
	}
	return v
}
