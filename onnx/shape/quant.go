package shape

import (
	"github.com/gradhop/gradhop/onnx"
	"slices"
)

func init() {
	register(inferQuantize, "QuantizeLinear")
	register(inferDequantize, "DequantizeLinear")
	register(inferDynamicQuantize, "DynamicQuantizeLinear")
	register(inferMatMulInteger, "MatMulInteger")
	register(inferConvInteger, "ConvInteger")
	register(inferQLinearMatMul, "QLinearMatMul")
	register(inferQLinearConv, "QLinearConv")
}

// like returns the shape of x with elements of type t.
func like(x *Info, t onnx.DataType) *Info {
	if x == nil {
		return &Info{Type: t}
	}
	return &Info{Type: t, Known: x.Known, Shape: x.Shape}
}

// typeOf returns the element type of input i of in, or otherwise if there is none.
func typeOf(in []*Info, i int, otherwise onnx.DataType) onnx.DataType {
	if x := arg(in, i); x != nil {
		return x.Type
	}
	return otherwise
}

// inferQuantize: the type of the zero point, or the attribute output_dtype.
func inferQuantize(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	t := onnx.DataType(n.Int("output_dtype", 0))
	if t == onnx.Undefined {
		t = onnx.Uint8
	}
	if n.In(2) != "" {
		t = typeOf(in, 2, onnx.Undefined)
	}
	return []*Info{like(arg(in, 0), t)}, nil
}

// inferDequantize: the type of the scale, or the attribute output_dtype.
func inferDequantize(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	t := onnx.DataType(n.Int("output_dtype", 0))
	if t == onnx.Undefined {
		t = typeOf(in, 1, onnx.Undefined)
	}
	return []*Info{like(arg(in, 0), t)}, nil
}

// inferDynamicQuantize: codes, scale and zero point.
func inferDynamicQuantize(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	one := func(t onnx.DataType) *Info { return &Info{Type: t, Known: true, Shape: []Dim{}} }
	return []*Info{like(arg(in, 0), onnx.Uint8), one(typeOf(in, 0, onnx.Float)), one(onnx.Uint8)}, nil
}

// product applies the rule of a product to inputs a and b, and sets the element type of the result.
func product(rule inferRule, inf *Inference, n *onnx.Node, a, b *Info, t onnx.DataType) ([]*Info, error) {
	out, err := rule(inf, n, []*Info{a, b})
	if err != nil || len(out) == 0 || out[0] == nil {
		return []*Info{{Type: t}}, err
	}
	return []*Info{like(out[0], t)}, nil
}

func plainMatMul(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	n = &onnx.Node{Op: "MatMul", Name: n.Name, Inputs: slices.Clone(n.Inputs), Outputs: n.Outputs}
	return inferMatMul(inf, n, in)
}

func inferMatMulInteger(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 1), onnx.Int32)
}

func inferConvInteger(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(inferConv, inf, n, arg(in, 0), arg(in, 1), onnx.Int32)
}

func inferQLinearMatMul(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 3), typeOf(in, 7, onnx.Undefined))
}

func inferQLinearConv(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(inferConv, inf, n, arg(in, 0), arg(in, 3), typeOf(in, 7, onnx.Undefined))
}
