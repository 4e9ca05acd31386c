package reference

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

func init() { operators["OneHot"] = oneHot }

// oneHot: y is off, and on where the position on the axis is the index.
func oneHot(n *onnx.Node, in []*Array) (*Array, error) {
	depth, off, on := int64(in[1].Data[0]), in[2].Data[0], in[2].Data[1]
	rank := int64(len(in[0].Shape))
	axis := n.Int("axis", -1)
	if axis < 0 {
		axis += rank + 1
	}
	y := newArray(slices.Insert(slices.Clone(in[0].Shape), int(axis), depth)...)
	inner := product(in[0].Shape[axis:])
	for i := range y.Data {
		y.Data[i] = off
	}
	for i, v := range in[0].Data {
		k := int64(v)
		if k < 0 {
			k += depth
		}
		if k >= 0 && k < depth {
			y.Data[(int64(i)/inner*depth+k)*inner+int64(i)%inner] = on
		}
	}
	return y, nil
}
