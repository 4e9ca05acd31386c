package shape

import "github.com/gradhop/gradhop/onnx"

func init() {
	register(inferSame, "Swish")
	register(inferCastLike, "CastLike")
}

// inferCastLike: input 0 with the element type of input 1.
func inferCastLike(inf *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	t := typeOf(in, 1, onnx.Undefined)
	if t == onnx.Undefined {
		return []*Info{like(arg(in, 0), t)}, nil
	}
	return inferCast(inf, &onnx.Node{Op: "Cast", Attrs: []*onnx.Attribute{onnx.IntAttr("to", int64(t))}}, in)
}
