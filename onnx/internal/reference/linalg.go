package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	operators["Det"] = func(_ *onnx.Node, in []*Array) (*Array, error) {
		rank := len(in[0].Shape)
		if rank < 2 || in[0].Shape[rank-1] != in[0].Shape[rank-2] {
			return nil, fmt.Errorf("shape %v holds no square matrices", in[0].Shape)
		}
		n := int(in[0].Shape[rank-1])
		y := newArray(in[0].Shape[:rank-2]...)
		for i := range y.Data {
			y.Data[i] = det(slices.Clone(in[0].Data[i*n*n:(i+1)*n*n]), n)
		}
		return y, nil
	}
}

// det overwrites the n rows of a by elimination with the largest pivot of a column.
func det(a []float64, n int) float64 {
	d := 1.0
	for k := range n {
		best := k
		for i := k; i < n; i++ {
			if math.Abs(a[i*n+k]) > math.Abs(a[best*n+k]) {
				best = i
			}
		}
		if a[best*n+k] == 0 {
			return 0
		}
		if best != k {
			d = -d
			for j := range n {
				a[best*n+j], a[k*n+j] = a[k*n+j], a[best*n+j]
			}
		}
		d *= a[k*n+k]
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / a[k*n+k]
			for j := k; j < n; j++ {
				a[i*n+j] -= f * a[k*n+j]
			}
		}
	}
	return d
}
