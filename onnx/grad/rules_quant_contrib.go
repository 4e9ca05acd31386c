package grad

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// Quantised operators of the runtime's own domain, written with those of the standard:
// the products stay products of integers.

// The runtime's operators took types of 16 bits before those of the standard did.
func standardQuantise(b *build.Builder, n *onnx.Node) []Value {
	t := b.Info(n.In(0)).Type
	if n.Op == "QuantizeLinear" {
		if t = onnx.Uint8; n.In(2) != "" {
			t = b.Info(n.In(2)).Type
		}
	}
	if b.Opset() < 21 && t != onnx.Uint8 && t != onnx.Int8 && t != onnx.Int32 {
		return refuse(b, n, "the standard quantises to %s from operator set 21 on; the model is of %d", t, b.Opset())
	}
	return []Value{b.Op(n.Op, n.Inputs, n.Attrs...)}
}

// scaled returns y, a product of integers, as floats times s_a·s_b, plus a bias. Where
// an s_a for each row is given it is laid along the rows.
func scaled(b *build.Builder, y, sa, sb, bias Value) Value {
	if s, ok := b.Shape(sa); ok && len(s) == 1 && !s[0].Is(1) {
		sa = b.Unsqueeze(sa, 1)
	}
	y = b.Mul(b.Cast(y, b.Info(sb).Type), b.Mul(sa, sb))
	if bias != "" {
		y = b.Add(y, bias)
	}
	return y
}

// Y = a_s·b_s·(A - a_z)·(B - b_z) + bias
func expandMatMulIntegerToFloat(b *build.Builder, n *onnx.Node) []Value {
	y := b.Op("MatMulInteger", []Value{n.In(0), n.In(1), n.In(4), n.In(5)})
	return []Value{scaled(b, y, n.In(2), n.In(3), n.In(6))}
}

// The same with A quantised by its range.
func expandDynamicQuantizeMatMul(b *build.Builder, n *onnx.Node) []Value {
	a := b.OpN("", "DynamicQuantizeLinear", 3, []Value{n.In(0)})
	if a == nil {
		return nil
	}
	y := b.Op("MatMulInteger", []Value{a[0], n.In(1), a[2], n.In(3)})
	return []Value{scaled(b, y, a[1], n.In(2), n.In(4))}
}

// Y = α·a_s·b_s·((A' - a_z)·(B' - b_z) + C), quantised again where y_s is given, with '
// for the transposes asked for.
func expandQGemm(b *build.Builder, n *onnx.Node) []Value {
	side := func(i int, name string) Value {
		if n.Int(name, 0) != 0 {
			return b.SwapLast(n.In(i))
		}
		return n.In(i)
	}
	y := b.Op("MatMulInteger", []Value{side(0, "transA"), side(3, "transB"), n.In(2), n.In(5)})
	if n.In(6) != "" {
		y = b.Add(y, n.In(6))
	}
	y = b.Scale(scaled(b, y, n.In(1), n.In(4), ""), float64(n.Float("alpha", 1)))
	if n.In(7) != "" {
		y = b.Op("QuantizeLinear", []Value{y, n.In(7), n.In(8)})
	}
	return []Value{y}
}

// Attention of dequantised inputs and weights, as the operator defines itself.
func expandQAttention(b *build.Builder, n *onnx.Node) []Value {
	x := b.Op("DequantizeLinear", []Value{n.In(0), n.In(3), n.In(6)})
	w := b.Op("DequantizeLinear", []Value{n.In(1), n.In(4), n.In(7)}, onnx.IntAttr("axis", 1))
	plain := &onnx.Node{Domain: contrib, Op: "Attention", Name: n.Name, Attrs: n.Attrs, Outputs: n.Outputs,
		Inputs: []Value{x, w, n.In(2), n.In(5), n.In(8)}}
	return expandContribAttention(b, plain)
}
