package onnx

func init() {
	register(inferMatMulIntegerToFloat, "MatMulIntegerToFloat")
	register(inferDynamicQuantizeMatMul, "DynamicQuantizeMatMul")
	register(inferQGemm, "QGemm")
	register(inferQAttention, "QAttention")
}

func inferMatMulIntegerToFloat(inf *inference, n *Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 1), typeOf(in, 2, Float))
}

func inferDynamicQuantizeMatMul(inf *inference, n *Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 1), typeOf(in, 0, Float))
}

// inferQGemm: codes where a scale for them is given, floats otherwise.
func inferQGemm(inf *inference, n *Node, in []*Info) ([]*Info, error) {
	t := typeOf(in, 1, Float)
	if n.In(7) != "" {
		t = typeOf(in, 8, Undefined)
	}
	return product(inferGemm, inf, n, arg(in, 0), arg(in, 3), t)
}

// inferQAttention: as Attention, of the type of the bias.
func inferQAttention(_ *inference, n *Node, in []*Info) ([]*Info, error) {
	plain := []*Info{arg(in, 0), arg(in, 1), arg(in, 2), arg(in, 5), arg(in, 8)}
	out, err := inferPackedAttention(n, plain)
	t := typeOf(in, 2, Float)
	for i, o := range out {
		out[i] = like(o, t)
	}
	if out == nil {
		out = []*Info{{Type: t}, {Type: t}}
	}
	return out, err
}
