package grad

import "github.com/gradhop/gradhop/onnx"

// sumTo undoes broadcasting: it sums d over the axes along which v was repeated.
func sumTo(b *onnx.Builder, n *onnx.Node, v, d Value) (Value, error) {
	want, okWant := b.Shape(v)
	have, okHave := b.Shape(d)
	bad := &ShapeError{Node: n.Label(), Value: v, Have: "?", Want: "?"}
	if okHave {
		bad.Have = onnx.ShapeString(have)
	}
	if okWant {
		bad.Want = onnx.ShapeString(want)
	}
	if !okWant || !okHave {
		return "", bad
	}
	if len(have) < len(want) {
		return sumTo(b, n, v, b.Expand(d, b.Op("Shape", []Value{v})))
	}
	extra := len(have) - len(want)
	var axes, lead []int64
	for i := range extra {
		lead = append(lead, int64(i))
	}
	axes = append(axes, lead...)
	for i, w := range want {
		h := have[extra+i]
		switch {
		case h.Equal(w):
		case w.Is(1):
			axes = append(axes, int64(extra+i))
		case h.Is(1):
			// The rule, or the seed, left an axis to be repeated.
			return sumTo(b, n, v, b.Expand(d, b.Op("Shape", []Value{v})))
		default:
			return "", bad
		}
	}
	if len(axes) == 0 {
		return d, nil
	}
	if len(axes) == extra {
		return b.ReduceSum(d, axes, false), nil
	}
	d = b.ReduceSum(d, axes, true)
	if extra > 0 {
		d = b.Squeeze(d, lead...)
	}
	return d, nil
}
