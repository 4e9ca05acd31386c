package reference

import (
	"fmt"

	"github.com/gradhop/gradhop/onnx"
)

func init() { operators["Col2Im"] = col2Im }

// col2Im adds entry k of block l of channel c to the pixel where it lies.
func col2Im(n *onnx.Node, in []*Array) (*Array, error) {
	x := in[0]
	r := len(in[1].Data)
	attr := func(name string, def int64) func(i int) int64 {
		v, ok := n.Ints(name)
		return func(i int) int64 {
			if !ok || i >= len(v) {
				return def
			}
			return v[i]
		}
	}
	strides, dilations, pads := attr("strides", 1), attr("dilations", 1), attr("pads", 0)
	image, block, count := make([]int64, r), make([]int64, r), make([]int64, r)
	size := int64(1)
	for i := range r {
		image[i], block[i] = int64(in[1].Data[i]), int64(in[2].Data[i])
		count[i] = (image[i]+pads(i)+pads(i+r)-dilations(i)*(block[i]-1)-1)/strides(i) + 1
		size *= block[i]
	}
	if x.Shape[1]%size != 0 {
		return nil, fmt.Errorf("%d channels in blocks of %d", x.Shape[1], size)
	}
	y := newArray(append([]int64{x.Shape[0], x.Shape[1] / size}, image...)...)
	for b := range y.Shape[0] {
		for c := range y.Shape[1] {
			entry := int64(0)
			places(block, func(k []int64) {
				column := int64(0)
				places(count, func(o []int64) {
					at := []int64{b, c}
					for i := range r {
						at = append(at, o[i]*strides(i)+k[i]*dilations(i)-pads(i))
					}
					if inside(at, y.Shape) {
						y.Data[y.index(at...)] += x.Data[x.index(b, c*size+entry, column)]
					}
					column++
				})
				entry++
			})
		}
	}
	return y, nil
}
