package quant

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
)

// Operators of the runtime's domain on codes with a scale and a zero point each: what
// they say, done with floats between DequantizeLinear and QuantizeLinear.

// floatOf returns the floats that the codes at input i stand for, whose scale and zero
// point follow them.
func floatOf(b *build.Builder, n *onnx.Node, i int) driver.Value {
	return b.Op("DequantizeLinear", []driver.Value{n.In(i), n.In(i + 1), n.In(i + 2)})
}

func quantisedAs(b *build.Builder, y, scale, zero driver.Value) driver.Value {
	return b.Op("QuantizeLinear", []driver.Value{y, scale, zero})
}

// QLinearConcat reads scale and zero point of the output, then codes, scale and zero point of each
// part.
func QLinearConcat(b *build.Builder, n *onnx.Node) []driver.Value {
	var parts []driver.Value
	for i := 2; i+1 < len(n.Inputs); i += 3 {
		parts = append(parts, floatOf(b, n, i))
	}
	return []driver.Value{quantisedAs(b, b.Op("Concat", parts, onnx.IntAttr("axis", n.Int("axis", 0))), n.In(0), n.In(1))}
}

// Binary returns the expansion of an operator of two quantised tensors: both are
// dequantised, op is applied, and the result quantised.
func Binary(op string) driver.Expansion {
	return func(b *build.Builder, n *onnx.Node) []driver.Value {
		return []driver.Value{quantisedAs(b, b.Op(op, []driver.Value{floatOf(b, n, 0), floatOf(b, n, 3)}), n.In(6), n.In(7))}
	}
}
