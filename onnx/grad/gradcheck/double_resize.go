package gradcheck

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// resize multiplies with a matrix along each axis whose size changes. The matrices
// are what the runtime's own float32 kernel makes of the unit vectors.
func resize(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x, okX := fixed(vals[n.In(0)])
	y, okY := fixed(vals[n.Out(0)])
	policy := n.Str("keep_aspect_ratio_policy", "stretch")
	if !okX || !okY || len(x) != len(y) || n.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" || policy != "stretch" {
		return false
	}
	axes, ok := n.Ints("axes")
	if !ok {
		axes = seq(int64(len(x)))
	}
	out := n.Inputs[0]
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x))
		}
		scale := float64(0)
		if n.In(2) != "" && (n.In(3) == "" || vals[n.In(3)].Shape == nil) {
			if s := vals[n.In(2)]; s != nil && len(s.Floats) == len(axes) {
				scale = s.Floats[i]
			}
		}
		if n.In(3) == "" && scale == 0 {
			return false
		}
		if x[a] == y[a] && (scale == 0 || scale == 1) {
			continue
		}
		matrix, ok := e.stretch(n, x[a], y[a], scale)
		if !ok {
			return false
		}
		// Last, multiplied, and back to where it was.
		perm := append(slices.Delete(seq(int64(len(x))), int(a), int(a)+1), a)
		t := e.node("MatMul", "", e.transpose(out, perm), e.constant(onnx.NewDouble("", []int64{x[a], y[a]}, matrix)))
		back := make([]int64, len(perm))
		for k, p := range perm {
			back[p] = int64(k)
		}
		out = e.transpose(t, back)
	}
	e.node("Identity", n.Outputs[0], out)
	return true
}

// stretch runs n, a Resize, on the unit vectors of one axis: in rows, the first one's
// image first. scale is 0 where the node is given sizes.
func (e *emitter) stretch(n *onnx.Node, from, to int64, scale float64) ([]float64, bool) {
	const side = 4096 // a matrix of more is too much
	if from > side || to > side || e.run == nil {
		return nil, false
	}
	node := &onnx.Node{Op: "Resize", Inputs: []string{"x", "", "scales"}, Outputs: []string{"y"}}
	for _, a := range n.Attrs {
		if a.Name != "axes" {
			node.Attrs = append(node.Attrs, a)
		}
	}
	g := &onnx.Graph{Name: "stretch", Nodes: []*onnx.Node{node}}
	if scale == 0 {
		node.Inputs = []string{"x", "", "", "sizes"}
		g.Initializers = []*onnx.Tensor{onnx.NewInt64("sizes", []int64{4}, []int64{from, 1, to, 1})}
	} else {
		g.Initializers = []*onnx.Tensor{onnx.NewFloat("scales", []int64{4}, []float32{1, 1, float32(scale), 1})}
	}
	shape := func(dims ...int64) onnx.Type {
		t := onnx.Type{Elem: onnx.Float, HasShape: true}
		for _, d := range dims {
			t.Shape = append(t.Shape, onnx.ShapeDim{Value: d})
		}
		return t
	}
	g.Inputs = []*onnx.ValueInfo{{Name: "x", Type: shape(from, 1, from, 1)}}
	g.Outputs = []*onnx.ValueInfo{{Name: "y", Type: shape(from, 1, to, 1)}}
	units := make([]float64, from*from)
	for i := range from {
		units[i*from+i] = 1
	}
	m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": e.opset}, Graph: g}
	got, err := e.run(m, []string{"y"}, feeds{"x": tensor(onnx.Float, []int64{from, 1, from, 1}, units)})
	if err != nil || int64(len(got["y"].Float64s())) != from*to {
		return nil, false
	}
	return got["y"].Float64s(), true
}
