package grad

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// Operators of the runtime's domain on codes with a scale and a zero point each: what
// they say, done with floats between DequantizeLinear and QuantizeLinear.

// floatOf returns the floats that the codes at input i stand for, whose scale and zero
// point follow them.
func floatOf(b *build.Builder, n *onnx.Node, i int) Value {
	return b.Op("DequantizeLinear", []Value{n.In(i), n.In(i + 1), n.In(i + 2)})
}

func quantisedAs(b *build.Builder, y, scale, zero Value) Value {
	return b.Op("QuantizeLinear", []Value{y, scale, zero})
}

// Inputs: scale and zero point of the output, then codes, scale and zero point of each
// part.
func expandQLinearConcat(b *build.Builder, n *onnx.Node) []Value {
	var parts []Value
	for i := 2; i+1 < len(n.Inputs); i += 3 {
		parts = append(parts, floatOf(b, n, i))
	}
	return []Value{quantisedAs(b, b.Op("Concat", parts, onnx.IntAttr("axis", n.Int("axis", 0))), n.In(0), n.In(1))}
}
