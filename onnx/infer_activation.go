package onnx

func init() {
	register(inferSame, "Swish")
	register(inferCastLike, "CastLike")
}

// inferCastLike: input 0 with elements of the type of input 1.
func inferCastLike(inf *inference, _ *Node, in []*Info) ([]*Info, error) {
	t := typeOf(in, 1, Undefined)
	if t == Undefined {
		return []*Info{like(arg(in, 0), t)}, nil
	}
	return inferCast(inf, &Node{Op: "Cast", Attrs: []*Attribute{IntAttr("to", int64(t))}}, in)
}
