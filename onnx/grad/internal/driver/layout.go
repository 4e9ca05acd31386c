package driver

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// BatchFirst reports whether n is a recurrent node with the batch in front, which the
// runtime has no kernel for.
func BatchFirst(n *onnx.Node) bool {
	return n.Domain == "" && (n.Op == "LSTM" || n.Op == "GRU" || n.Op == "RNN") && n.Int("layout", 0) != 0
}

// ExpandBatchFirst writes a recurrent node with the batch in front as one with the
// steps in front, between transposes.
func ExpandBatchFirst(b *build.Builder, n *onnx.Node) []Value {
	in := slices.Clone(n.Inputs)
	for _, i := range []int{0, 5, 6} {
		if n.In(i) != "" {
			in[i] = b.Transpose(in[i], 1, 0, 2)
		}
	}
	attrs := slices.DeleteFunc(slices.Clone(n.Attrs), func(a *onnx.Attribute) bool { return a.Name == "layout" })
	out := b.OpN("", n.Op, len(n.Outputs), in, attrs...)
	for i, v := range out {
		if i == 0 {
			out[i] = b.Transpose(v, 2, 0, 1, 3)
		} else {
			out[i] = b.Transpose(v, 1, 0, 2)
		}
	}
	return out
}
