package grad

import (
	"github.com/gradhop/gradhop/onnx"
)

func init() {
	standard(ruleBackToShape, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
	standard(ruleTranspose, "Transpose")
	standard(ruleExpand, "Expand")
	standard(ruleConcat, "Concat")
	Register("", "Split", 1, ruleSplit, AllOutputs)
	standard(ruleSlice, "Slice")
}

// Operators that only rename the dimensions: dx is dy in the shape of x.
func ruleBackToShape(b *onnx.Builder, n Node, dy []Value) []Value {
	shape, ok := b.Shape(n.In(0))
	if !ok {
		return []Value{b.Reshape(dy[0], b.Op("Shape", []Value{n.In(0)}))}
	}
	return []Value{b.ReshapeTo(dy[0], shape, n.In(0))}
}

// Transpose by perm: dx is dy transposed by its inverse.
func ruleTranspose(b *onnx.Builder, n Node, dy []Value) []Value {
	perm, err := onnx.Permutation(n.Node, b.Info(dy[0]).Rank())
	if err != nil {
		b.Fail(err)
		return nil
	}
	inverse := make([]int64, len(perm))
	for i, p := range perm {
		inverse[p] = int64(i)
	}
	return []Value{b.Transpose(dy[0], inverse...)}
}

// Expand is broadcasting, which the driver undoes.
func ruleExpand(_ *onnx.Builder, _ Node, dy []Value) []Value { return dy[:1] }

// Concat: each input gets its slice of dy.
func ruleConcat(b *onnx.Builder, n Node, dy []Value) []Value {
	rank := b.Info(dy[0]).Rank()
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(rank)
	}
	dx := make([]Value, len(n.Inputs))
	from := onnx.D(0)
	for i, x := range n.Inputs {
		shape, ok := b.Shape(x)
		if !ok {
			b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "unknown rank", Want: "?"})
			return nil
		}
		to := from.Add(shape[axis])
		if n.Need(i) {
			dx[i] = slice(b, dy[0], axis, from, to, n.Inputs[:i+1])
		}
		from = to
	}
	return dx
}

// slice takes [from, to) of x along axis.
func slice(b *onnx.Builder, x Value, axis int64, from, to onnx.Dim, sources []Value) Value {
	lo, okLo := from.Const()
	hi, okHi := to.Const()
	if okLo && okHi {
		return b.Op("Slice", []Value{x, b.Ints(lo), b.Ints(hi), b.Ints(axis)})
	}
	return b.Op("Slice", []Value{x, b.DynamicShape([]onnx.Dim{from}, sources...), b.DynamicShape([]onnx.Dim{to}, sources...), b.Ints(axis)})
}

// Split is Concat backwards; an output nobody used counts as zero.
func ruleSplit(b *onnx.Builder, n Node, dy []Value) []Value {
	parts := make([]Value, len(n.Outputs))
	for i, y := range n.Outputs {
		parts[i] = dy[i]
		if shape, ok := b.Shape(y); parts[i] == "" && ok {
			// Not y·0: y may be infinite.
			parts[i] = b.Zeros(shape, b.Info(y).Type, y)
		} else if parts[i] == "" {
			b.Fail(&ShapeError{Node: n.Label(), Value: y, Have: "?", Want: "unknown rank"})
		}
	}
	return []Value{b.Op("Concat", parts, onnx.IntAttr("axis", n.Int("axis", 0)))}
}

// Slice: zeros in the shape of x, with dy scattered to where it came from. The
// positions are the same slice of an index ramp.
func ruleSlice(b *onnx.Builder, n Node, dy []Value) []Value {
	x := n.In(0)
	shape, ok := b.Shape(x)
	if !ok {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "unknown rank", Want: "?"})
		return nil
	}
	var in []*onnx.Info
	for _, v := range n.Inputs {
		in = append(in, b.Info(v))
	}
	starts, ends, axes, steps, ok := onnx.SliceArgs(n.Node, in, len(shape))
	if !ok {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "a slice computed at run time", Want: onnx.ShapeString(shape)})
		return nil
	}
	// One axis at a time, last first: each step undoes the slice of one axis.
	d := dy[0]
	for k := len(axes) - 1; k >= 0; k-- {
		a := axes[k]
		if a < 0 {
			a += int64(len(shape))
		}
		size := b.Squeeze(b.DynamicShape([]onnx.Dim{shape[a]}, x), 0)
		ramp := b.Op("Range", []Value{b.Const(onnx.NewInt64("", nil, []int64{0})), size, b.Const(onnx.NewInt64("", nil, []int64{1}))})
		lo, hi := sliceBound(b, n, 1, k, starts[k]), sliceBound(b, n, 2, k, ends[k])
		at := b.Op("Slice", []Value{ramp, lo, hi, b.Ints(0), b.Ints(steps[k])})
		b.MarkUnique(at)
		d = scatterAxis(b, d, at, a, shape[a], x)
	}
	return []Value{d}
}

// sliceBound returns element k of a bound of Slice as a vector: a constant, or read
// from input i of the node.
func sliceBound(b *onnx.Builder, n Node, i, k int, d onnx.Dim) Value {
	if v, ok := d.Const(); ok {
		return b.Ints(v)
	}
	return b.Gather(n.In(i), b.Ints(int64(k)), 0)
}
