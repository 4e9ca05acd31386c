package onnx_test

import (
	"testing"

	"github.com/gradhop/gradhop/onnx"
)

// TestInferUnknown: nothing is concluded from a value of which nothing is known,
// whichever input it is.
func TestInferUnknown(t *testing.T) {
	for _, op := range []string{"Add", "Sub", "Mul", "Pow", "Mod", "Max", "Less", "And"} {
		for at := range 2 {
			in := []string{"x", "x"}
			in[at] = "mystery"
			m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18, "example": 1}, Graph: &onnx.Graph{
				Name:   "unknown",
				Inputs: []*onnx.ValueInfo{{Name: "x", Type: onnx.Type{Elem: onnx.Float, HasShape: true, Shape: []onnx.ShapeDim{{Value: 3}}}}},
				Nodes: []*onnx.Node{
					{Op: "Mystery", Domain: "example", Inputs: []string{"x"}, Outputs: []string{"mystery"}},
					{Op: op, Inputs: in, Outputs: []string{"y"}},
				},
				Outputs: []*onnx.ValueInfo{{Name: "y"}},
			}}
			vals, err := onnx.Infer(m)
			if err != nil {
				t.Errorf("%s with input %d unknown: %v", op, at, err)
			}
			if y := vals["y"]; y != nil && y.Known {
				t.Errorf("%s with input %d unknown has shape %s", op, at, onnx.ShapeString(y.Shape))
			}
		}
	}
}
