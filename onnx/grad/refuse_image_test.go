package grad_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/grad/gradtest"
)

// backwardOf differentiates the one output that build makes, by its first input.
func backwardOf(t *testing.T, build func(g *gradtest.Gen, x onnx.Value) onnx.Value, shape ...int64) error {
	t.Helper()
	g := gradtest.NewGen(20, onnx.Float, false, 1)
	x := g.Float(onnx.Dims(shape...), g.Signed)
	y := build(g, x)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	out, _ := g.Shape(y)
	_, err := grad.Backward(g.Builder, []onnx.Value{y}, []onnx.Value{g.Input("seed", onnx.Float, out...)}, []onnx.Value{x})
	return err
}

// TestBatchNormTraining: statistics of the batch are for training.
func TestBatchNormTraining(t *testing.T) {
	err := backwardOf(t, func(g *gradtest.Gen, x onnx.Value) onnx.Value {
		v := g.Fixed(onnx.Dims(3), g.Positive)
		return g.OpN("", "BatchNormalization", 3, []onnx.Value{x, v, v, v, v}, onnx.IntAttr("training_mode", 1))[0]
	}, 2, 3, 4)
	var training *grad.TrainingError
	if !errors.As(err, &training) {
		t.Errorf("got %v, want a TrainingError", err)
	}
}

// TestHugeWindows: sizes that a file states are not taken on trust.
func TestHugeWindows(t *testing.T) {
	const huge = 1 << 30
	for name, build := range map[string]func(g *gradtest.Gen, x onnx.Value) onnx.Value{
		"AveragePool": func(g *gradtest.Gen, x onnx.Value) onnx.Value {
			return g.Op("AveragePool", []onnx.Value{x}, onnx.IntsAttr("kernel_shape", huge), onnx.IntsAttr("pads", huge, huge))
		},
		"LpPool": func(g *gradtest.Gen, x onnx.Value) onnx.Value {
			return g.Op("LpPool", []onnx.Value{x}, onnx.IntsAttr("kernel_shape", huge), onnx.IntsAttr("pads", huge, huge), onnx.IntsAttr("strides", 3))
		},
		"LRN": func(g *gradtest.Gen, x onnx.Value) onnx.Value {
			return g.Op("LRN", []onnx.Value{x}, onnx.IntAttr("size", huge))
		},
		"AffineGrid": func(g *gradtest.Gen, x onnx.Value) onnx.Value {
			return g.Op("AffineGrid", []onnx.Value{x, g.Ints(2, 1, huge, huge)})
		},
		"Col2Im": func(g *gradtest.Gen, x onnx.Value) onnx.Value {
			return g.Op("Col2Im", []onnx.Value{x, g.Ints(huge, huge), g.Ints(1, 1)})
		},
	} {
		if err := backwardOf(t, build, 2, 2, 3); err == nil || !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "size") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
