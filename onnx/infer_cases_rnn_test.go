package onnx_test

import "github.com/gradhop/gradhop/onnx"

func init() {
	for op, gates := range map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1} {
		inferCases[op] = inferCase{build: func(g *gen) {
			dirs, direction := onnx.D(1), "reverse"
			if g.Coin() {
				dirs, direction = onnx.D(2), "bidirectional"
			}
			x := g.Float([]onnx.Dim{g.Dim(), g.Dim(), onnx.D(2)}, g.Signed)
			w, r := g.Float([]onnx.Dim{dirs, onnx.D(3 * gates), onnx.D(2)}, g.Signed), g.Float([]onnx.Dim{dirs, onnx.D(3 * gates), onnx.D(3)}, g.Signed)
			outputs := 2
			if op == "LSTM" {
				outputs = 3
			}
			g.Out(g.OpN("", op, outputs, []value{x, w, r}, onnx.IntAttr("hidden_size", 3), onnx.StringAttr("direction", direction))...)
		}}
	}
}
