package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"math"
)

func init() {
	upgradeAt(10, sliceToInputs, "Slice")
	upgradeAt(10, topKToInput, "TopK")
	upgradeAt(11, padToInputs, "Pad")
	upgradeAt(11, clipToInputs, "Clip")
	upgradeAt(11, scatterRenamed, "Scatter")
	upgradeAt(10, dropoutMaskIsBool, "Dropout")
	upgradeAt(12, dropoutToInput, "Dropout")
	upgradeAt(13, axesToInput, "Squeeze Unsqueeze ReduceSum")
	upgradeAt(13, splitToInput, "Split")
	upgradeAt(16, roiAlignKeepsGrid, "RoiAlign")
	upgradeAt(18, axesToInput, "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare")
	upgradeAt(18, splitCountsOutputs, "Split")
}

// sliceToInputs: starts, ends and axes became inputs. Missing axes used to mean the first ones, and now
// mean all.
func sliceToInputs(u *upgrader, n *onnx.Node) []*onnx.Node {
	starts, ends, axes := u.attr(n, "starts"), u.attr(n, "ends"), u.attr(n, "axes")
	if starts == nil || ends == nil {
		u.fail(n, "it has no starts or no ends")
		return nil
	}
	on := make([]int64, len(starts.Ints))
	for i := range on {
		on[i] = int64(i)
	}
	if axes != nil && len(axes.Ints) > 0 {
		on = axes.Ints
	}
	setInput(n, 1, u.ints(n, "starts", starts.Ints...))
	setInput(n, 2, u.ints(n, "ends", ends.Ints...))
	setInput(n, 3, u.ints(n, "axes", on...))
	return []*onnx.Node{n}
}

// topKToInput: k became an input.
func topKToInput(u *upgrader, n *onnx.Node) []*onnx.Node {
	k := u.attr(n, "k")
	if k == nil {
		u.fail(n, "it has no k")
		return nil
	}
	setInput(n, 1, u.ints(n, "k", k.I))
	return []*onnx.Node{n}
}

// like returns a scalar constant with the element type of x, and a node that computes it if the type is
// unknown.
func (u *upgrader) like(n *onnx.Node, what string, v float32, x string) (nodes []*onnx.Node, name string) {
	number := func(t *onnx.Tensor) string { return u.tensor(n, what, t) }
	switch i := u.vals.Info(x); {
	case i != nil && i.Type == onnx.Float:
		return nil, number(onnx.NewFloat("", nil, []float32{v}))
	case i != nil && i.Type == onnx.Double:
		return nil, number(onnx.NewDouble("", nil, []float64{float64(v)}))
	case i != nil && i.Type == onnx.Float16:
		return nil, number(onnx.NewFloat16("", nil, []float32{v}))
	case u.target >= 15:
		c, name := u.helper(n, "CastLike", what+"_cast", []string{number(onnx.NewFloat("", nil, []float32{v})), x})
		return []*onnx.Node{c}, name
	}
	u.fail(n, "the element type of %q is unknown, which needs opset 15 or later", x)
	return nil, ""
}

// padToInputs: pads and the constant became inputs.
func padToInputs(u *upgrader, n *onnx.Node) []*onnx.Node {
	pads, value := u.attr(n, "pads"), u.attr(n, "value")
	if pads == nil {
		u.fail(n, "it has no pads")
		return nil
	}
	setInput(n, 1, u.ints(n, "pads", pads.Ints...))
	if value == nil || value.F == 0 || n.Str("mode", "constant") != "constant" {
		return []*onnx.Node{n}
	}
	nodes, v := u.like(n, "value", value.F, n.In(0))
	setInput(n, 2, v)
	return append(nodes, n)
}

// clipToInputs: the bounds became inputs. The default bound changed from the largest float32 to the
// largest value of the element type.
func clipToInputs(u *upgrader, n *onnx.Node) []*onnx.Node {
	var nodes []*onnx.Node
	i := u.vals.Info(n.In(0))
	for k, name := range []string{"min", "max"} {
		bound := float32([2]float64{-math.MaxFloat32, math.MaxFloat32}[k])
		a := u.attr(n, name)
		if (a == nil || a.F == bound) && (i == nil || i.Type != onnx.Double) {
			continue
		}
		if a != nil {
			bound = a.F
		}
		more, v := u.like(n, name, bound, n.In(0))
		nodes = append(nodes, more...)
		setInput(n, k+1, v)
	}
	return append(nodes, n)
}

// scatterRenamed: Scatter became ScatterElements.
func scatterRenamed(_ *upgrader, n *onnx.Node) []*onnx.Node {
	n.Op = "ScatterElements"
	return []*onnx.Node{n}
}

// dropoutMaskIsBool: the mask had the type of the data. In inference its elements are undefined; here
// they are zero.
func dropoutMaskIsBool(u *upgrader, n *onnx.Node) []*onnx.Node {
	mask := n.Out(1)
	if mask == "" {
		return []*onnx.Node{n}
	}
	x := u.vals.Info(n.In(0))
	if x == nil || x.Type == onnx.Undefined {
		u.fail(n, "its mask has an unknown element type")
		return nil
	}
	raw := u.fresh(n, "mask")
	n.Outputs[1] = raw
	return []*onnx.Node{n, {Op: "Cast", Name: mask, Inputs: []string{raw}, Outputs: []string{mask}, Attrs: []*onnx.Attribute{onnx.IntAttr("to", int64(x.Type))}}}
}

// dropoutToInput: the ratio became an input. The mask in inference used to be undefined, false in
// runtimes, and is now true.
func dropoutToInput(u *upgrader, n *onnx.Node) []*onnx.Node {
	if ratio := u.attr(n, "ratio"); ratio != nil {
		setInput(n, 1, u.tensor(n, "ratio", onnx.NewFloat("", nil, []float32{ratio.F})))
	}
	mask := n.Out(1)
	n.Outputs = n.Outputs[:min(1, len(n.Outputs))]
	if mask == "" {
		return []*onnx.Node{n}
	}
	shape, s := u.helper(n, "Shape", "shape", []string{n.In(0)})
	off := onnx.TensorAttr("value", onnx.NewBool("", []int64{1}, []bool{false}))
	nodes := []*onnx.Node{shape, {Op: "ConstantOfShape", Name: mask, Inputs: []string{s}, Outputs: []string{mask}, Attrs: []*onnx.Attribute{off}}}
	if n.Out(0) != "" {
		nodes = append(nodes, n)
	}
	return nodes
}

// axesToInput: axes became an input. Missing or empty axes mean all in both versions.
func axesToInput(u *upgrader, n *onnx.Node) []*onnx.Node {
	if axes := u.attr(n, "axes"); axes != nil && len(axes.Ints) > 0 {
		setInput(n, 1, u.ints(n, "axes", axes.Ints...))
	}
	return []*onnx.Node{n}
}

// splitToInput: the lengths became an input.
func splitToInput(u *upgrader, n *onnx.Node) []*onnx.Node {
	if split := u.attr(n, "split"); split != nil && len(split.Ints) > 0 {
		setInput(n, 1, u.ints(n, "split", split.Ints...))
	}
	return []*onnx.Node{n}
}

// splitCountsOutputs: equal parts need the attribute num_outputs.
func splitCountsOutputs(_ *upgrader, n *onnx.Node) []*onnx.Node {
	if n.In(1) == "" && n.Attr("num_outputs") == nil {
		n.Attrs = withAttrs(n.Attrs, onnx.IntAttr("num_outputs", int64(len(n.Outputs))))
	}
	return []*onnx.Node{n}
}

// roiAlignKeepsGrid: the default now shifts regions by half a pixel; keep the old default.
func roiAlignKeepsGrid(_ *upgrader, n *onnx.Node) []*onnx.Node {
	if n.Attr("coordinate_transformation_mode") == nil {
		n.Attrs = withAttrs(n.Attrs, onnx.StringAttr("coordinate_transformation_mode", "output_half_pixel"))
	}
	return []*onnx.Node{n}
}
