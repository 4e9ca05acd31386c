package shape_test

import (
	"testing"

	"github.com/gradhop/gradhop/onnx/internal/gradtest"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// inferCase makes random calls of one operator.
type inferCase struct {
	build func(g *gradtest.Gen)
	since int64 // first operator set with it
	// opsets, where given, are tried instead of the usual ones.
	opsets []int64
	// open says why dimensions may stay unknown without symbols.
	open string
}

// inferCases is filled by the init functions of infer_cases_*_test.go.
var inferCases = map[string]inferCase{}

// TestInfer compares what Infer says of the output of every operator it knows
// with what the runtime returns: type, rank, every dimension that is known, and
// elements where they are known. An operator without a case fails.
func TestInfer(t *testing.T) {
	for _, op := range shape.Operators() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			c, ok := inferCases[op]
			if !ok {
				t.Fatalf("inference of %s has no case", op)
			}
			opsets := []int64{11, 13, 18, 20}
			if c.opsets != nil {
				opsets = c.opsets
			}
			for _, opset := range opsets {
				for trial := range 4 {
					if opset < c.since {
						continue
					}
					g := gradtest.NewGen(opset, onnx.Float, trial%2 == 1, uint64(trial))
					c.build(g)
					if err := gradtest.SameAsRun(g, c.open == "" && !g.Symbolic); err != nil {
						t.Errorf("opset %d, trial %d: %v", opset, trial, err)
					}
				}
			}
		})
	}
}
