package shape_test

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

func init() {
	for _, op := range []string{"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"} {
		inferCases[op] = inferCase{since: 12, build: func(g *gen) {
			s := g.RandShape(g.Between(2, 4))
			t := g.Indices(append([]shape.Dim{s[0]}, s[2:]...), g.Size(s[1]), onnx.Int64, false)
			how := []string{"none", "sum", "mean"}[g.R.IntN(3)]
			outputs := 1
			if op[0] == 'S' {
				outputs = 2
			}
			g.Out(g.OpN("", op, outputs, []value{g.Float(s, g.Signed), t}, onnx.StringAttr("reduction", how))...)
		}}
	}
	inferCases["Det"] = inferCase{build: func(g *gen) {
		s := g.RandShape(g.Between(0, 2))
		g.Out(g.Op("Det", []value{g.Float(append(s, shape.D(3), shape.D(3)), g.Signed)}))
	}}
}
