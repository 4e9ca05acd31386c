package grad

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// Integers that index a table have a gradient at their one-hot encoding: with
// O[…, v] = 1 where the code is v, Gather(W, c) = O·W is linear in O. The gradient
// of codes c has the shape of c with one axis more. Operators that only move codes
// move that axis along; comparisons and the like end the path.

// carriers are the operators that move codes, with the inputs that they move.
var carriers = map[string][]int{
	"Identity": {0}, "Cast": {0}, "Reshape": {0}, "Flatten": {0}, "Squeeze": {0}, "Unsqueeze": {0},
	"Transpose": {0}, "Slice": {0}, "Split": {0}, "Expand": {0}, "Tile": {0}, "Gather": {0}, "Where": {1, 2}, "Concat": nil,
}

// indexers are the operators that pick entries by codes: those, at input 1 or 0.
var indexers = map[string]int{"Gather": 1, "GatherElements": 1, "OneHot": 0}

// carried reports whether the integer outputs of n are codes of its input, moved.
func (p *pass) carried(n *onnx.Node) bool {
	if n.Domain != "" {
		return false
	}
	at, ok := carriers[n.Op]
	if !ok {
		return false
	}
	for i, v := range n.Inputs {
		if p.reach[v] && (!p.codes[v] || at != nil && !slices.Contains(at, i)) {
			return false
		}
	}
	return true
}

// computesWithCodes reports whether n, which is on the path, uses integers that
// depend on codes otherwise than to move them or to pick entries by them.
func (p *pass) computesWithCodes(n *onnx.Node) bool {
	for i, v := range n.Inputs {
		if !p.reach[v] || p.isFloat(v) {
			continue
		}
		at, indexes := indexers[n.Op]
		if n.Domain == "" && p.codes[v] && (indexes && at == i || p.carried(n) && !p.isFloat(n.Out(0))) {
			continue
		}
		return true
	}
	return false
}

// addCodes adds to the gradient of input i of n, which holds codes.
func (p *pass) addCodes(n *onnx.Node, i int, dy []Value) error {
	var d Value
	if at, ok := indexers[n.Op]; ok && at == i {
		d = picked(p.b, n, dy[0])
	} else {
		d = moved(p.b, n, i, dy)
	}
	if err := p.b.Err(); err != nil {
		return at(n, err)
	}
	if have := p.grads[n.Inputs[i]]; have != "" {
		a, _ := p.b.Shape(have)
		b, _ := p.b.Shape(d)
		if !onnx.SameShape(a, b) {
			return &ShapeError{Node: n.Label(), Value: n.Inputs[i], Have: onnx.ShapeString(b), Want: onnx.ShapeString(a)}
		}
	}
	p.accumulate(n.Inputs[i], d)
	return p.b.Err()
}

// picked returns the gradient at the one-hot encoding of the codes by which n picks.
func picked(b *onnx.Builder, n *onnx.Node, dy Value) Value {
	if n.Op == "OneHot" {
		// y = off + O·(on - off), with the new axis at axis.
		on := b.Squeeze(b.Op("Slice", []Value{n.In(2), b.Ints(1), b.Ints(2)}), 0)
		off := b.Squeeze(b.Op("Slice", []Value{n.In(2), b.Ints(0), b.Ints(1)}), 0)
		return b.Mul(toLast(b, dy, n.Int("axis", -1)), b.Sub(on, off))
	}
	x, idx := n.In(0), n.In(1)
	shape, okX := b.Shape(x)
	at, okI := b.Shape(idx)
	if !okX || !okI {
		b.Fail(&ShapeError{Node: n.Label(), Value: idx, Have: "unknown rank", Want: "?"})
		return ""
	}
	a := n.Int("axis", 0)
	if a < 0 {
		a += int64(len(shape))
	}
	if n.Op == "GatherElements" {
		// y[i] = Σ_v O[i, v]·x[i with v at axis]
		for k := range shape {
			if int64(k) != a && !shape[k].Equal(at[k]) {
				b.Fail(&ShapeError{Node: n.Label(), Value: idx, Have: onnx.ShapeString(at), Want: onnx.ShapeString(shape)})
				return ""
			}
		}
		return b.Mul(b.Unsqueeze(dy, int64(len(at))), b.Unsqueeze(toLast(b, x, a), a))
	}
	// Rows of a table: dy·Wᵀ, with the axes around the picked one flattened.
	table := b.Transpose(x, append([]int64{a}, without(len(shape), a)...)...)
	lead := int64(len(at))
	perm := make([]int64, 0, len(shape)-1+len(at))
	for k := range lead {
		perm = append(perm, a+k)
	}
	for k := range int64(len(shape)) - 1 + lead {
		if k < a || k >= a+lead {
			perm = append(perm, k)
		}
	}
	d := b.Transpose(dy, perm...)
	switch len(shape) {
	case 1:
		return b.Mul(b.Unsqueeze(d, lead), table)
	case 2:
	default:
		rest := onnx.Product(append(slices.Clone(shape[:a]), shape[a+1:]...))
		table = b.ReshapeTo(table, []onnx.Dim{shape[a], rest}, x)
		d = b.ReshapeTo(d, append(slices.Clone(at), rest), dy, x, idx)
	}
	if lead == 0 {
		return b.Squeeze(b.MatMul(b.Unsqueeze(d, 0), b.SwapLast(table)), 0)
	}
	return b.MatMul(d, b.SwapLast(table))
}

// toLast moves an axis of x behind the others.
func toLast(b *onnx.Builder, x Value, axis int64) Value {
	rank := b.Info(x).Rank()
	if rank < 1 {
		b.Fail(&ShapeError{Node: "codes", Value: x, Have: "unknown rank", Want: "?"})
		return ""
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return b.Transpose(x, append(without(rank, axis), axis)...)
}

// moved returns the gradient of input i of an operator that moves codes, dy having
// the one-hot axis behind those of the outputs. Renamed axes are done directly; for
// the others the operator's own rule is asked about its twin that moves one-hot
// encodings, which nobody reads and which is dropped.
func moved(b *onnx.Builder, n *onnx.Node, i int, dy []Value) Value {
	x := n.Inputs[i]
	shape, ok := b.Shape(x)
	k := slices.IndexFunc(dy, func(d Value) bool { return d != "" })
	hot, okD := b.Shape(dy[k])
	if !ok || !okD {
		b.Fail(&ShapeError{Node: n.Label(), Value: x, Have: "unknown rank", Want: "?"})
		return ""
	}
	size := hot[len(hot)-1]
	full := append(slices.Clone(shape), size)
	switch n.Op {
	case "Identity", "Cast":
		return dy[0]
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return b.ReshapeTo(dy[0], full, x, dy[0])
	}
	twin := &onnx.Node{Op: n.Op, Inputs: slices.Clone(n.Inputs), Attrs: slices.Clone(n.Attrs)}
	for j, a := range twin.Attrs {
		switch {
		case a.Name == "axis" && a.I < 0:
			twin.Attrs[j] = onnx.IntAttr("axis", a.I+int64(len(shape)))
		case a.Name == "perm":
			twin.Attrs[j] = onnx.IntsAttr("perm", append(slices.Clone(a.Ints), int64(len(shape)))...)
		}
	}
	t := b.Info(dy[k]).Type
	for j, v := range n.Inputs {
		s, ok := b.Shape(v)
		switch {
		case v == "":
		case n.Op == "Where" && j == 0:
			twin.Inputs[j] = b.Unsqueeze(v, int64(len(s)))
		case j == i || n.Op == "Where" || n.Op == "Concat":
			if !ok {
				b.Fail(&ShapeError{Node: n.Label(), Value: v, Have: "unknown rank", Want: "?"})
				return ""
			}
			twin.Inputs[j] = b.Zeros(append(slices.Clone(s), size), t, v, dy[k])
		case n.Op == "Expand":
			twin.Inputs[j] = b.Op("Concat", []Value{v, b.DynamicShape([]onnx.Dim{size}, dy[k])}, onnx.IntAttr("axis", 0))
		case n.Op == "Tile":
			twin.Inputs[j] = b.Op("Concat", []Value{v, b.Ints(1)}, onnx.IntAttr("axis", 0))
		case n.Op == "Slice" && j == 3:
			twin.Inputs[j] = fromFront(b, n, v, len(shape))
		}
	}
	twin.Outputs = b.OpN("", n.Op, len(n.Outputs), twin.Inputs, twin.Attrs...)
	if b.Err() != nil {
		return ""
	}
	need := make([]bool, len(n.Inputs))
	need[i] = true
	dx := lookup("", n.Op, b.Opset()).rule(b, Node{Node: twin, need: need}, dy)
	if b.Err() != nil {
		return ""
	}
	d, err := sumTo(b, n, twin.Inputs[i], dx[i])
	if err != nil {
		b.Fail(err)
	}
	return d
}

// fromFront returns constant axes counted from the front.
func fromFront(b *onnx.Builder, n *onnx.Node, axes Value, rank int) Value {
	var out []int64
	for _, d := range b.Info(axes).Ints {
		a, ok := d.Const()
		if !ok {
			out = nil
			break
		}
		if a < 0 {
			a += int64(rank)
		}
		out = append(out, a)
	}
	if out == nil {
		b.Fail(&ShapeError{Node: n.Label(), Value: axes, Have: "axes unknown until run time", Want: "constant axes"})
		return ""
	}
	return b.Ints(out...)
}
