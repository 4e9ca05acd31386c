package shape

import "github.com/gradhop/gradhop/onnx"

func init() {
	register(inferMatMulIntegerToFloat, "MatMulIntegerToFloat")
	register(inferDynamicQuantizeMatMul, "DynamicQuantizeMatMul")
	register(inferQGemm, "QGemm")
	register(inferDynamicQuantizeLSTM, "DynamicQuantizeLSTM")
	register(inferQAttention, "QAttention")
}

func inferMatMulIntegerToFloat(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 1), typeOf(in, 2, onnx.Float))
}

func inferDynamicQuantizeMatMul(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	return product(plainMatMul, inf, n, arg(in, 0), arg(in, 1), typeOf(in, 0, onnx.Float))
}

// inferDynamicQuantizeLSTM: as LSTM, with recurrence weights [directions, hidden, ·].
func inferDynamicQuantizeLSTM(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	r := arg(in, 2)
	if r.Rank() != 3 {
		return nil, nil
	}
	return inferRecurrent(inf, n, []*Info{arg(in, 0), arg(in, 1), {Type: r.Type, Known: true, Shape: []Dim{r.Shape[0], r.Shape[2], r.Shape[1]}}})
}

// inferQGemm: codes if their scale is given, otherwise floats.
func inferQGemm(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	t := typeOf(in, 1, onnx.Float)
	if n.In(7) != "" {
		t = typeOf(in, 8, onnx.Undefined)
	}
	return product(inferGemm, inf, n, arg(in, 0), arg(in, 3), t)
}

// inferQAttention: like Attention, with the type of the bias.
func inferQAttention(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	plain := []*Info{arg(in, 0), arg(in, 1), arg(in, 2), arg(in, 5), arg(in, 8)}
	out, err := inferPackedAttention(n, plain)
	t := typeOf(in, 2, onnx.Float)
	for i, o := range out {
		out[i] = like(o, t)
	}
	if out == nil {
		out = []*Info{{Type: t}, {Type: t}}
	}
	return out, err
}

func init() {
	register(inferQLinearPair, "QLinearAdd", "QLinearMul")
	register(inferQLinearConcat, "QLinearConcat")
}

// inferQLinearPair: codes of two inputs, each followed by scale and zero point.
func inferQLinearPair(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	t := typeOf(in, 0, onnx.Undefined)
	if arg(in, 0) == nil || arg(in, 3) == nil {
		return []*Info{{Type: t}}, nil
	}
	out, err := broadcastAll([]*Info{in[0], in[3]})
	return []*Info{like(out, t)}, err
}

// inferQLinearConcat: scale and zero point of the output, then codes, scale and zero point of each
// part.
func inferQLinearConcat(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	var parts []*Info
	plain := &onnx.Node{Op: "Concat", Name: n.Name, Outputs: n.Outputs, Attrs: n.Attrs}
	for i := 2; i < len(in); i += 3 {
		parts = append(parts, in[i])
		plain.Inputs = append(plain.Inputs, n.In(i))
	}
	return inferRules["Concat"](inf, plain, parts)
}
