package shape

import (
	"fmt"
	"github.com/gradhop/gradhop/onnx"
	"slices"
)

func init() {
	register(inferLoss, "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
	register(inferDet, "Det")
}

// inferLoss: input [N, C, d…] and classes [N, d…] give a loss with the shape of the classes, or a
// scalar. The second output has the shape of the input.
func inferLoss(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x, t := arg(in, 0), arg(in, 1)
	if x == nil {
		return nil, nil
	}
	loss := &Info{Type: x.Type, Known: true}
	if n.Str("reduction", "mean") == "none" {
		loss.Known = t != nil && t.Known
		if loss.Known {
			loss.Shape = t.Shape
		}
	}
	if x.Known && t != nil && t.Known {
		if len(x.Shape) != len(t.Shape)+1 || len(x.Shape) < 2 {
			return nil, fmt.Errorf("classes of shape %s do not match input of shape %s", String(t.Shape), String(x.Shape))
		}
	}
	return []*Info{loss, {Type: x.Type, Known: x.Known, Shape: x.Shape}}, nil
}

func inferDet(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil || !x.Known {
		return nil, nil
	}
	r := len(x.Shape)
	if r < 2 || differ(x.Shape[r-1], x.Shape[r-2]) {
		return nil, fmt.Errorf("input of shape %s does not hold square matrices", String(x.Shape))
	}
	return []*Info{{Type: x.Type, Known: true, Shape: slices.Clone(x.Shape[:r-2])}}, nil
}
