package driver

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Where indices are all different, the adjoint of a gather is a plain scatter, or a
// gather by the inverse: much cheaper than adding up, which runs on one thread.

// depthOfSearch bounds the chains of nodes that are looked through.
const depthOfSearch = 16

// Distinct reports whether no two elements of v index the same entry of an axis.
func Distinct(b *build.Builder, v Value, size shape.Dim) bool {
	dims, ok := b.Shape(v)
	if b.Unique(v) || ok && shape.Product(dims).Is(1) {
		return true
	}
	if list, ok := Constants(b, v); ok {
		return AllDifferent(list, size)
	}
	return ascending(b, v, depthOfSearch)
}

// ascending reports whether v holds different numbers, none negative.
func ascending(b *build.Builder, v Value, depth int) bool {
	w := b.Writer(v)
	if w == nil || w.Domain != "" || depth == 0 {
		return false
	}
	switch w.Op {
	case "Range":
		lo, okLo := Constants(b, w.In(0))
		step, okStep := Constants(b, w.In(2))
		return okLo && okStep && len(lo) == 1 && len(step) == 1 && lo[0] >= 0 && step[0] > 0
	case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice":
		return ascending(b, w.In(0), depth-1)
	case "Expand", "Tile":
		from, okF := b.Shape(w.In(0))
		to, okT := b.Shape(v)
		return okF && okT && shape.Product(from).Equal(shape.Product(to)) && ascending(b, w.In(0), depth-1)
	}
	return false
}

// DistinctTuples reports whether no two index tuples, along the last axis of v, are
// the same.
func DistinctTuples(b *build.Builder, v Value, dims []shape.Dim) bool {
	at, ok := b.Shape(v)
	if !ok || len(at) == 0 {
		return false
	}
	last := int64(len(at) - 1)
	if b.Unique(v) || shape.Product(at[:last]).Is(1) || at[last].Is(1) && len(dims) > 0 && Distinct(b, v, dims[0]) {
		return true
	}
	w := b.Writer(v)
	if w == nil || w.Domain != "" {
		return false
	}
	switch w.Op {
	case "Concat":
		// Different in one of the numbers is different.
		if a := w.Int("axis", 0); a != last && a != -1 {
			return false
		}
		return slices.ContainsFunc(w.Inputs, func(in Value) bool {
			s, ok := b.Shape(in)
			return ok && len(s) > 0 && s[len(s)-1].Is(1) && ascending(b, in, depthOfSearch)
		})
	case "Transpose":
		from := b.Writer(w.In(0))
		return from != nil && from.Op == "NonZero"
	}
	return false
}

// DistinctAlong reports whether no line of v along an axis repeats an index.
func DistinctAlong(b *build.Builder, v Value, axis int64) bool {
	shape, ok := b.Shape(v)
	if !ok || len(shape) == 0 {
		return ok
	}
	front := func(a int64) int64 { return (a + int64(len(shape))) % int64(len(shape)) }
	if b.Unique(v) || shape[front(axis)].Is(1) {
		return true
	}
	w := b.Writer(v)
	return w != nil && w.Domain == "" && w.Op == "TopK" && w.Out(1) == v && front(w.Int("axis", -1)) == front(axis)
}

// maxConstant bounds the constant indices that rules look at.
const maxConstant = 1 << 18

// Constants returns the elements of a constant integer tensor, and whether v is one
// of moderate size.
func Constants(b *build.Builder, v Value) ([]int64, bool) {
	if info := b.Info(v); info.Ints != nil && info.Constant() {
		out := make([]int64, len(info.Ints))
		for i, d := range info.Ints {
			out[i], _ = d.Const()
		}
		return out, true
	}
	t := b.Constant(v)
	if w := b.Writer(v); w != nil && w.Op == "Constant" && w.Domain == "" {
		t = shape.ConstantTensor(w)
	}
	if t == nil || t.External != nil || t.Type != onnx.Int64 && t.Type != onnx.Int32 {
		return nil, false
	}
	if n, err := t.Elements(); err != nil || n > maxConstant {
		return nil, false
	}
	list, err := t.Int64s()
	return list, err == nil
}

// AllDifferent reports whether list indexes an axis of the given size without
// repeats.
func AllDifferent(list []int64, size shape.Dim) bool {
	n, known := size.Const()
	seen := make(map[int64]bool, len(list))
	negative, positive := false, false
	for _, i := range list {
		negative, positive = negative || i < 0, positive || i >= 0
		if known && i < 0 {
			i += n
		}
		if seen[i] {
			return false
		}
		seen[i] = true
	}
	return known || !(negative && positive)
}
