package grad

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	standard(ruleReduceSum, "ReduceSum")
	standard(ruleReduceMean, "ReduceMean")
	standard(ruleSoftmax, "Softmax")
	standard(ruleLogSoftmax, "LogSoftmax")
	standard(ruleLayerNorm, "LayerNormalization")
}

// reduction describes a Reduce node: the axes summed over, and the shape of x with
// ones there.
type reduction struct {
	axes []int64
	kept []onnx.Dim
	size onnx.Dim // number of elements that go into one
}

func reductionOf(b *onnx.Builder, n Node) (reduction, bool) {
	shape, ok := b.Shape(n.In(0))
	if !ok {
		return reduction{}, false
	}
	axes, given := n.Ints("axes")
	if !given && n.In(1) != "" {
		for _, d := range b.Info(n.In(1)).Ints {
			v, isConst := d.Const()
			ok = ok && isConst
			axes = append(axes, v)
		}
		ok = ok && b.Info(n.In(1)).Ints != nil
	}
	r := reduction{kept: slices.Clone(shape), size: onnx.D(1)}
	if len(axes) == 0 && n.Int("noop_with_empty_axes", 0) == 0 {
		for i := range shape {
			axes = append(axes, int64(i))
		}
	}
	for _, a := range axes {
		if a < 0 {
			a += int64(len(shape))
		}
		r.axes = append(r.axes, a)
		r.kept[a] = onnx.D(1)
		r.size = r.size.Mul(shape[a])
	}
	return r, ok
}

// spread gives the gradient of a reduction the rank of x, ready to broadcast.
func (r reduction) spread(b *onnx.Builder, n Node, d Value) Value {
	if n.Int("keepdims", 1) == 0 {
		slices.Sort(r.axes)
		return b.Unsqueeze(d, r.axes...)
	}
	return d
}

// unknownAxes reports a reduction whose axes are computed at run time.
func unknownAxes(b *onnx.Builder, n Node) []Value {
	b.Fail(&ShapeError{Node: n.Label(), Value: n.In(0), Have: "axes or a rank unknown until run time", Want: "constant axes"})
	return nil
}

// y = Σ x: dx = dy, repeated.
func ruleReduceSum(b *onnx.Builder, n Node, dy []Value) []Value {
	r, ok := reductionOf(b, n)
	if !ok {
		return unknownAxes(b, n)
	}
	return []Value{repeat(b, r.spread(b, n, dy[0]), n.In(0))}
}

// y = mean x: dx = dy/count, repeated.
func ruleReduceMean(b *onnx.Builder, n Node, dy []Value) []Value {
	r, ok := reductionOf(b, n)
	if !ok {
		return unknownAxes(b, n)
	}
	d := r.spread(b, n, dy[0])
	if count, ok := r.size.Const(); ok {
		d = b.Scale(d, 1/float64(count))
	} else {
		d = b.Div(d, b.Cast(b.DynamicShape([]onnx.Dim{r.size}, n.In(0)), b.Info(d).Type))
	}
	return []Value{repeat(b, d, n.In(0))}
}

// repeat broadcasts d to the shape of x.
func repeat(b *onnx.Builder, d, x Value) Value {
	have, okH := b.Shape(d)
	want, okW := b.Shape(x)
	if okH && okW && onnx.SameShape(have, want) {
		return d
	}
	return b.Expand(d, b.Op("Shape", []Value{x}))
}

// axisOf returns the axis that Softmax normalises over.
func axisOf(n Node) []int64 { return []int64{n.Int("axis", -1)} }

// y = softmax x: dx = y·(dy - Σ dy·y)
func ruleSoftmax(b *onnx.Builder, n Node, dy []Value) []Value {
	y := n.Out(0)
	dot := b.ReduceSum(b.Mul(dy[0], y), axisOf(n), true)
	return []Value{b.Mul(y, b.Sub(dy[0], dot))}
}

// y = log softmax x: dx = dy - exp(y)·Σ dy
func ruleLogSoftmax(b *onnx.Builder, n Node, dy []Value) []Value {
	sum := b.ReduceSum(dy[0], axisOf(n), true)
	return []Value{b.Sub(dy[0], b.Mul(b.Op("Exp", []Value{n.Out(0)}), sum))}
}

// y = x̂·γ + β with x̂ = (x-μ)/σ over the last axes: with d = dy·γ,
// dx = (d - mean d - x̂·mean(d·x̂))/σ, dγ = Σ dy·x̂, dβ = Σ dy. The statistics are
// the operator's own second and third output where it has them.
func ruleLayerNorm(b *onnx.Builder, n Node, dy []Value) []Value {
	x, scale := n.In(0), n.In(1)
	rank := int64(b.Info(x).Rank())
	if rank < 1 {
		return unknownAxes(b, n)
	}
	from := n.Int("axis", -1)
	if from < 0 {
		from += rank
	}
	var axes []int64
	for a := from; a < rank; a++ {
		axes = append(axes, a)
	}
	hat, inv := LayerNormParts(b, x, axes, float64(n.Float("epsilon", 1e-5)))
	dx := make([]Value, len(n.Inputs))
	if n.Need(0) {
		dx[0] = layerNormBackward(b, b.Mul(dy[0], scale), hat, inv, axes)
	}
	if n.Need(1) {
		dx[1] = b.Mul(dy[0], hat)
	}
	if n.Need(2) {
		dx[2] = dy[0]
	}
	return dx
}

// LayerNormParts returns x̂ = (x-μ)/σ and 1/σ over axes, σ² = var x + eps.
func LayerNormParts(b *onnx.Builder, x Value, axes []int64, eps float64) (hat, inv Value) {
	c := b.Sub(x, b.ReduceMean(x, axes, true))
	v := b.ReduceMean(b.Mul(c, c), axes, true)
	inv = b.Op("Reciprocal", []Value{b.Op("Sqrt", []Value{b.Add(v, b.Scalar(eps, v))})})
	return b.Mul(c, inv), inv
}

func layerNormBackward(b *onnx.Builder, d, hat, inv Value, axes []int64) Value {
	m := b.ReduceMean(d, axes, true)
	h := b.ReduceMean(b.Mul(d, hat), axes, true)
	return b.Mul(b.Sub(b.Sub(d, m), b.Mul(hat, h)), inv)
}
