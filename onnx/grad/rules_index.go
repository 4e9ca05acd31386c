package grad

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	standard(ruleGather, "Gather")
	standard(ruleGatherElements, "GatherElements")
	standard(ruleGatherND, "GatherND")
	standard(ruleScatterND, "ScatterND")
	standard(ruleScatterElements, "ScatterElements")
}

// scatterAxis returns the adjoint of Gather(x, at, axis) for a vector at: a tensor
// like dy with size entries along axis, in which entry k of dy is added at
// at[k] and the rest is zero. Sources are values from which dimensions that are
// not numbers can be read.
func scatterAxis(b *onnx.Builder, dy, at Value, axis int64, size onnx.Dim, sources ...Value) Value {
	shape, _ := b.Shape(dy)
	rank := len(shape)
	front := make([]int64, 0, rank)
	front = append(front, axis)
	for i := range int64(rank) {
		if i != axis {
			front = append(front, i)
		}
	}
	back := make([]int64, rank)
	for i, p := range front {
		back[p] = int64(i)
	}
	dy = b.Transpose(dy, front...)
	full, _ := b.Shape(dy)
	full = slices.Clone(full)
	if len(full) == 0 {
		b.Fail(&ShapeError{Node: "scatter", Value: dy, Have: "unknown rank", Want: "?"})
		return ""
	}
	full[0] = size
	zeros := b.Zeros(full, b.Info(dy).Type, append([]Value{dy}, sources...)...)
	return b.Transpose(scatterRows(b, zeros, at, dy), back...)
}

// ScatterND: the updates get the entries of dy that they were written to, the data
// get the others; where updates are added the data get all.
func ruleScatterND(b *onnx.Builder, n Node, dy []Value) []Value {
	idx, upd := n.In(1), n.In(2)
	return scatterBack(b, n, dy[0],
		func() Value { return b.Op("GatherND", []Value{dy[0], idx}) },
		func(zeros Value) Value { return b.Op("ScatterND", []Value{dy[0], idx, zeros}) }, upd)
}

// ScatterElements: the same along one axis.
func ruleScatterElements(b *onnx.Builder, n Node, dy []Value) []Value {
	idx, upd, axis := n.In(1), n.In(2), onnx.IntAttr("axis", n.Int("axis", 0))
	return scatterBack(b, n, dy[0],
		func() Value { return b.Op("GatherElements", []Value{dy[0], idx}, axis) },
		func(zeros Value) Value { return b.Op("ScatterElements", []Value{dy[0], idx, zeros}, axis) }, upd)
}

func scatterBack(b *onnx.Builder, n Node, dy Value, gather func() Value, erase func(zeros Value) Value, upd Value) []Value {
	how := n.Str("reduction", "none")
	if how != "none" && how != "add" {
		b.Fail(&MissingError{Nodes: []*onnx.Node{n.Node}})
		return nil
	}
	dx := []Value{"", "", ""}
	if how == "none" {
		b.MarkUnique(n.In(1)) // the standard forbids duplicates here
	}
	switch shape, ok := b.Shape(upd); {
	case !n.Need(0):
	case how == "add":
		dx[0] = dy
	case !ok:
		b.Fail(&ShapeError{Node: n.Label(), Value: upd, Have: "unknown rank", Want: "?"})
	default:
		dx[0] = erase(b.Zeros(shape, b.Info(dy).Type, upd))
	}
	if n.Need(2) {
		dx[2] = gather()
	}
	return dx
}

// scatterRows adds dy, row by row, to zeros at the row numbers in at. Duplicates
// add up; where there are none the plain form is faster.
func scatterRows(b *onnx.Builder, zeros, at, dy Value) Value {
	wide := b.Cast(at, onnx.Int64) // ScatterND takes no other type
	if b.Unique(at) {
		b.MarkUnique(wide)
	}
	at = wide
	if b.Unique(at) {
		return b.Op("ScatterND", []Value{zeros, b.Unsqueeze(at, 1), dy})
	}
	return b.Op("ScatterND", []Value{zeros, b.Unsqueeze(at, 1), dy}, onnx.StringAttr("reduction", "add"))
}

// Gather: dx is zero but for the rows read, to which dy is added.
func ruleGather(b *onnx.Builder, n Node, dy []Value) []Value {
	x, idx := n.In(0), n.In(1)
	shape, okX := b.Shape(x)
	at, okI := b.Shape(idx)
	if !okX || !okI {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "unknown rank", Want: "?"})
		return nil
	}
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(shape))
	}
	// One axis in place of the axes of idx.
	mid := slices.Concat(shape[:axis], []onnx.Dim{onnx.Product(at)}, shape[axis+1:])
	d := b.ReshapeTo(dy[0], mid, x, idx)
	flat := idx
	if len(at) != 1 {
		flat = b.Reshape(idx, b.Ints(-1))
		if b.Unique(idx) {
			b.MarkUnique(flat)
		}
	}
	return []Value{scatterAxis(b, d, flat, axis, shape[axis], x)}
}

// GatherElements: the same with one index an element.
func ruleGatherElements(b *onnx.Builder, n Node, dy []Value) []Value {
	x := n.In(0)
	shape, ok := b.Shape(x)
	if !ok {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "unknown rank", Want: "?"})
		return nil
	}
	return []Value{scatterElements(b, b.Zeros(shape, b.Info(x).Type, x), n.In(1), dy[0], n.Int("axis", 0))}
}

// scatterElements adds dy to zeros at idx along axis.
func scatterElements(b *onnx.Builder, zeros, idx, dy Value, axis int64) Value {
	attrs := []*onnx.Attribute{onnx.IntAttr("axis", axis)}
	single := false
	if s, ok := b.Shape(idx); ok && len(s) > 0 {
		single = s[(axis+int64(len(s)))%int64(len(s))].Is(1)
	}
	if !single && !b.Unique(idx) {
		attrs = append(attrs, onnx.StringAttr("reduction", "add"))
	}
	return b.Op("ScatterElements", []Value{zeros, idx, dy}, attrs...)
}

// GatherND: dy scattered back.
func ruleGatherND(b *onnx.Builder, n Node, dy []Value) []Value {
	x, idx := n.In(0), n.In(1)
	shape, ok := b.Shape(x)
	if !ok || n.Int("batch_dims", 0) != 0 {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "batch_dims or an unknown rank", Want: "no batch_dims"})
		return nil
	}
	zeros := b.Zeros(shape, b.Info(x).Type, x)
	if b.Unique(idx) {
		return []Value{b.Op("ScatterND", []Value{zeros, idx, dy[0]})}
	}
	return []Value{b.Op("ScatterND", []Value{zeros, idx, dy[0]}, onnx.StringAttr("reduction", "add"))}
}
