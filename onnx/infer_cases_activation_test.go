package onnx_test

import "github.com/gradhop/gradhop/onnx"

func init() {
	inferCases["Swish"] = inferCase{opsets: []int64{24}, build: func(g *gen) {
		g.Out(g.Op("Swish", []value{numbers(g, g.Between(0, 3))}, onnx.FloatAttr("alpha", 0.5)))
	}}
}
