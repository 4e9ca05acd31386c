package grad_test

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/gradtest"
	"github.com/gradhop/gradhop/onnx/ort"
)

func init() {
	oracles["ScatterND"] = oracle{build: scatterND, since: 11}
	oracles["ScatterElements"] = oracle{build: scatterElements, since: 9}
}

// reduction draws how updates are combined: only then may indices repeat.
func reduction(g *gradtest.Gen) (how string, attrs []*onnx.Attribute) {
	switch {
	case g.Opset() >= 18:
		how = []string{"none", "add", "mul", "max", "min"}[g.R.IntN(5)]
	case g.Opset() >= 16:
		how = []string{"none", "add", "mul"}[g.R.IntN(3)]
	default:
		return "none", nil
	}
	return how, []*onnx.Attribute{onnx.StringAttr("reduction", how)}
}

// scatterND writes rows, or entries in the first two axes.
func scatterND(g *gradtest.Gen) {
	shape := g.RandShape(g.Between(2, 3))
	last := g.Between(1, 2)
	how, attrs := reduction(g)
	at := []int64{1, 0, -1}
	if last == 2 {
		at = []int64{1, 0, -2, 1, 1, 1}
	}
	dims := []int64{3, int64(last)}
	if how == "none" { // no repeats
		at, dims = at[:2*last], []int64{2, int64(last)}
	} else {
		at[0] = at[last]
	}
	if last == 1 && g.Size(shape[0]) < 3 && how == "none" {
		at = []int64{1, 0}
	}
	idx := g.Feed(onnx.Int64, onnx.Dims(dims...), &ort.Tensor{Shape: dims, Data: at})
	upd := append(onnx.Dims(dims[0]), shape[last:]...)
	in := []onnx.Value{g.Float(shape, g.Signed), idx, g.Float(upd, g.Signed)}
	g.Out(g.Op("ScatterND", in, attrs...))
}

func scatterElements(g *gradtest.Gen) {
	rank := g.Between(1, 3)
	shape := g.RandShape(rank)
	a := g.R.IntN(rank)
	how, attrs := reduction(g)
	at := append([]onnx.Dim{}, shape...)
	at[a] = onnx.D(1)
	if how != "none" {
		at[a] = g.Dim()
	}
	op := "ScatterElements"
	if g.Opset() < 11 {
		op = "Scatter"
	}
	idx := g.Indices(at, g.Size(shape[a]), []onnx.DataType{onnx.Int64, onnx.Int32}[g.R.IntN(2)], g.Opset() >= 11)
	in := []onnx.Value{g.Float(shape, g.Signed), idx, g.Float(at, g.Signed)}
	g.Out(g.Op(op, in, append(attrs, onnx.IntAttr("axis", g.Axis(a, rank)))...))
}
