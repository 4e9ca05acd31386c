package shape_test

import (
	"testing"

	"github.com/gradhop/gradhop/onnx/internal/gradtest"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestInferRunTimeAxes: a reduction over axes that only the run knows has a rank,
// since the number of axes is known; what is reshaped from an unknown rank has no dimension -1.
func TestInferRunTimeAxes(t *testing.T) {
	for _, keep := range []int64{0, 1} {
		g := gradtest.NewGen(18, onnx.Float, false, 1)
		x := g.Float(shape.Dims(2, 3, 4), g.Signed)
		axes := g.Feed(onnx.Int64, shape.Dims(2), &ort.Tensor{Shape: []int64{2}, Data: []int64{0, 2}})
		y := g.Op("ReduceMax", []value{x, axes}, onnx.IntAttr("keepdims", keep))
		z := g.Reshape(y, g.Ints(-1, 1))
		if want := []int{1, 3}[keep]; g.Info(y).Rank() != want {
			t.Errorf("keepdims %d: rank %d inferred, want %d", keep, g.Info(y).Rank(), want)
		}
		g.Out(z)
		if err := gradtest.SameAsRun(g, false); err != nil {
			t.Errorf("keepdims %d: %v", keep, err)
		}
	}
}
