package gradcheck

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Convolutions and poolings have kernels in float32 only. In float64 they are
// products of matrices: what each window covers becomes a column. All sizes must be
// known.

// fixed returns dimensions that are numbers.
func fixed(i *shape.Info) ([]int64, bool) {
	if i == nil || !i.Known {
		return nil, false
	}
	out := make([]int64, len(i.Shape))
	for k, d := range i.Shape {
		n, ok := d.Const()
		if !ok {
			return nil, false
		}
		out[k] = n
	}
	return out, true
}

// columns returns [N, C, K, P]: for each of P windows the K entries that it covers.
// x of shape [N, C, size...] gets begin and end zeros on each spatial axis first.
func (e *emitter) columns(x string, shape []int64, ws []shape.Window, out []int64) string {
	rank := len(shape)
	pads := make([]int64, 2*rank)
	for i, w := range ws {
		pads[2+i] = w.Begin
		// Exactly what the windows need: the last one may reach beyond, or end before.
		pads[rank+2+i] = (out[i]-1)*w.Stride + w.Extent() - w.Begin - shape[2+i]
	}
	if slices.ContainsFunc(pads, func(p int64) bool { return p != 0 }) {
		x = e.node("Pad", "", x, e.ints(pads...))
	}
	axes, steps := make([]int64, len(ws)), make([]int64, len(ws))
	kernel := make([]int64, len(ws))
	for i, w := range ws {
		axes[i], steps[i], kernel[i] = int64(2+i), w.Stride, w.Kernel
	}
	var parts []string
	at := make([]int64, len(ws))
	for range product(kernel) {
		starts, ends := make([]int64, len(ws)), make([]int64, len(ws))
		for i, w := range ws {
			starts[i] = at[i] * w.Dilation
			ends[i] = starts[i] + (out[i]-1)*w.Stride + 1
		}
		part := e.node("Slice", "", x, e.ints(starts...), e.ints(ends...), e.ints(axes...), e.ints(steps...))
		parts = append(parts, e.reshape(part, shape[0], shape[1], 1, product(out)))
		for i := len(at) - 1; i >= 0; i-- { // the next place in the kernel
			if at[i]++; at[i] < kernel[i] {
				break
			}
			at[i] = 0
		}
	}
	return e.with("Concat", "", []*onnx.Attribute{onnx.IntAttr("axis", 2)}, parts...)
}

// multiply writes the product of columns and weights [G, M/G, C/G·K], with a bias.
func (e *emitter) multiply(n *onnx.Node, cols, weights string, batch, groups, inner int64, maps int64, out []int64) {
	cols = e.reshape(cols, batch, groups, inner, product(out))
	y := e.node("MatMul", "", e.reshape(weights, 1, groups, maps/groups, inner), cols)
	shape := append([]int64{batch, maps}, out...)
	if n.In(2) == "" {
		e.node("Reshape", n.Outputs[0], y, e.ints(shape...))
		return
	}
	bias := e.reshape(n.Inputs[2], append([]int64{1, maps}, slices.Repeat([]int64{1}, len(out))...)...)
	e.node("Add", n.Outputs[0], e.reshape(y, shape...), bias)
}

// windows returns the windows of n and how many fit on each axis.
func windows(n *onnx.Node, x, weights []shape.Dim) (ws []shape.Window, out []int64, ok bool) {
	ws, ok, err := shape.Windows(n, x, weights)
	if err != nil || !ok {
		return nil, nil, false
	}
	for i, w := range ws {
		d, known := w.Count(x[2+i])
		c, isNumber := d.Const()
		if !known || !isNumber || c < 1 {
			return nil, nil, false
		}
		out = append(out, c)
	}
	return ws, out, true
}

func conv(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x, okX := fixed(vals[n.In(0)])
	w, okW := fixed(vals[n.In(1)])
	if !okX || !okW {
		return false
	}
	ws, out, ok := windows(n, vals[n.In(0)].Shape, vals[n.In(1)].Shape)
	if !ok {
		return false
	}
	g := n.Int("group", 1)
	e.multiply(n, e.columns(n.Inputs[0], x, ws, out), n.Inputs[1], x[0], g, product(w[1:]), w[0], out)
	return true
}

// convTranspose spreads the input by its strides and slides the kernel, turned round,
// over it.
func convTranspose(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x, okX := fixed(vals[n.In(0)])
	w, okW := fixed(vals[n.In(1)])
	if !okX || !okW {
		return false
	}
	ts, err := shape.Transposes(n, vals[n.In(0)].Shape, vals[n.In(1)].Shape)
	if err != nil || ts == nil {
		return false
	}
	g, spatial := n.Int("group", 1), len(ts)
	apart, pads := []int64{x[0], x[1]}, make([]int64, 2*(2+2*spatial))
	spread := []int64{x[0], x[1]}
	ws, out := make([]shape.Window, spatial), make([]int64, spatial)
	for i, t := range ts {
		apart = append(apart, x[2+i], 1)
		pads[len(pads)/2+3+2*i] = t.Stride - 1
		spread = append(spread, x[2+i]*t.Stride)
		ws[i] = shape.Window{Kernel: t.Kernel, Stride: 1, Dilation: t.Dilation, Begin: t.Extent() - 1 - t.Begin}
		size, ok := t.Size.Const()
		if !ok {
			return false
		}
		out[i] = size
	}
	z := e.node("Pad", "", e.reshape(n.Inputs[0], apart...), e.ints(pads...))
	z = e.reshape(z, spread...)
	k := product(w[2:])
	turned := e.reshape(n.Inputs[1], g, x[1]/g, w[1], k)
	turned = e.node("Slice", "", turned, e.ints(-1), e.ints(-k-1), e.ints(3), e.ints(-1))
	turned = e.transpose(turned, []int64{0, 2, 1, 3})
	e.multiply(n, e.columns(z, spread, ws, out), turned, x[0], g, x[1]/g*k, w[1]*g, out)
	return true
}

func averagePool(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x, ok := fixed(vals[n.In(0)])
	if !ok || len(n.Outputs) > 1 {
		return false
	}
	ws, out, ok := windows(n, vals[n.In(0)].Shape, nil)
	if !ok {
		return false
	}
	padded := n.Int("count_include_pad", 0) != 0
	share := []float64{1}
	for i, w := range ws {
		var next []float64
		for _, s := range share {
			for o := range out[i] {
				count := 0.0
				for k := range w.Kernel {
					at := o*w.Stride + k*w.Dilation - w.Begin
					if at >= 0 && at < x[2+i] || padded && at >= -w.Begin && at < x[2+i]+w.End {
						count++
					}
				}
				next = append(next, s/count)
			}
		}
		share = next
	}
	cols := e.columns(n.Inputs[0], x, ws, out)
	sum := e.with("ReduceSum", "", []*onnx.Attribute{onnx.IntAttr("keepdims", 0)}, cols, e.ints(2))
	y := e.node("Mul", "", sum, e.constant(onnx.NewDouble("", []int64{int64(len(share))}, share)))
	e.node("Reshape", n.Outputs[0], y, e.ints(append([]int64{x[0], x[1]}, out...)...))
	return true
}

func globalAverage(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x := vals[n.In(0)]
	if !x.Known || len(x.Shape) < 3 {
		return false
	}
	e.node("ReduceMean", n.Outputs[0], n.Inputs[0], e.ints(seq(int64(len(x.Shape)))[2:]...))
	return true
}

func instanceNorm(e *emitter, n *onnx.Node, vals shape.Values) bool {
	x, ok := fixed(vals[n.In(0)])
	if !ok || len(x) < 3 {
		return false
	}
	axes := e.ints(seq(int64(len(x)))[2:]...)
	centred := e.node("Sub", "", n.Inputs[0], e.node("ReduceMean", "", n.Inputs[0], axes))
	variance := e.node("ReduceMean", "", e.node("Mul", "", centred, centred), axes)
	sigma := e.node("Sqrt", "", e.node("Add", "", variance, e.number(float64(n.Float("epsilon", 1e-5)))))
	channel := append([]int64{x[1]}, slices.Repeat([]int64{1}, len(x)-2)...)
	y := e.node("Mul", "", e.node("Div", "", centred, sigma), e.reshape(n.Inputs[1], channel...))
	e.node("Add", n.Outputs[0], y, e.reshape(n.Inputs[2], channel...))
	return true
}
