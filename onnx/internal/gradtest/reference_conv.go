package gradtest

import (
	"fmt"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

func init() {
	references["Conv"] = conv
	references["ConvTranspose"] = convTranspose
}

// places calls f with every position in a box of the given sizes, row by row.
func places(sizes []int64, f func(at []int64)) {
	for _, n := range sizes {
		if n == 0 {
			return
		}
	}
	at := make([]int64, len(sizes))
	for {
		f(at)
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < sizes[i] {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// index returns the place of an element of a.
func (a *Array) index(at ...int64) int {
	k := int64(0)
	for i, p := range at {
		k = k*a.Shape[i] + p
	}
	return int(k)
}

func inside(at, sizes []int64) bool {
	for i, p := range at {
		if p < 0 || p >= sizes[i] {
			return false
		}
	}
	return true
}

// conv: y[n, m, o] = b[m] + Σ x[n, c, s·o + d·k - p]·w[m, c, k], zero outside x.
func conv(n *onnx.Node, in []*Array) (*Array, error) {
	x, w := in[0], in[1]
	ws, ok, err := shape.Windows(n, shape.Dims(x.Shape...), shape.Dims(w.Shape...))
	if err != nil || !ok {
		return nil, fmt.Errorf("windows: %v", err)
	}
	y := NewArray(x.Shape[0], w.Shape[0])
	for i, win := range ws {
		size, _ := shape.D(x.Shape[2+i]).Const()
		y.Shape = append(y.Shape, (size+win.Begin+win.End-win.Dilation*(win.Kernel-1)-1)/win.Stride+1)
	}
	y = NewArray(y.Shape...)
	group := n.Int("group", 1)
	perGroup := w.Shape[0] / group
	at, weight := make([]int64, len(x.Shape)), make([]int64, len(w.Shape))
	places(y.Shape, func(o []int64) {
		sum := 0.0
		if len(in) > 2 && in[2] != nil {
			sum = in[2].Data[o[1]]
		}
		places(w.Shape[1:], func(k []int64) {
			at[0], at[1] = o[0], o[1]/perGroup*w.Shape[1]+k[0]
			for i, win := range ws {
				at[2+i] = win.Stride*o[2+i] + win.Dilation*k[1+i] - win.Begin
			}
			if inside(at, x.Shape) {
				weight[0] = o[1]
				copy(weight[1:], k)
				sum += x.Data[x.index(at...)] * w.Data[w.index(weight...)]
			}
		})
		y.Data[y.index(o...)] = sum
	})
	return y, nil
}

// convTranspose: x[n, c, i]·w[c, m, k] is added to y[n, m, s·i + d·k - p], where that
// lies inside y.
func convTranspose(n *onnx.Node, in []*Array) (*Array, error) {
	x, w := in[0], in[1]
	ts, err := shape.Transposes(n, shape.Dims(x.Shape...), shape.Dims(w.Shape...))
	if err != nil {
		return nil, err
	}
	group := n.Int("group", 1)
	perGroup := x.Shape[1] / group
	shape := []int64{x.Shape[0], w.Shape[1] * group}
	for _, t := range ts {
		size, _ := t.Size.Const()
		shape = append(shape, size)
	}
	y := NewArray(shape...)
	if len(in) > 2 && in[2] != nil {
		places(shape, func(o []int64) { y.Data[y.index(o...)] = in[2].Data[o[1]] })
	}
	at, weight := make([]int64, len(shape)), make([]int64, len(w.Shape))
	places(x.Shape, func(p []int64) {
		places(w.Shape[1:], func(k []int64) {
			at[0], at[1] = p[0], p[1]/perGroup*w.Shape[1]+k[0]
			for i, t := range ts {
				at[2+i] = t.Stride*p[2+i] + t.Dilation*k[1+i] - t.Begin
			}
			if inside(at, shape) {
				weight[0] = p[1]
				copy(weight[1:], k)
				y.Data[y.index(at...)] += x.Data[x.index(p...)] * w.Data[w.index(weight...)]
			}
		})
	})
	return y, nil
}
