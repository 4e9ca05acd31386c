package reference

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// Array is a tensor of numbers.
type Array struct {
	Shape []int64
	Data  []float64
}

// newArray returns zeros.
func newArray(shape ...int64) *Array {
	return &Array{Shape: slices.Clone(shape), Data: make([]float64, product(shape))}
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// index returns the place of an element of a.
func (a *Array) index(at ...int64) int {
	k := int64(0)
	for i, p := range at {
		k = k*a.Shape[i] + p
	}
	return int(k)
}

// places calls f with every position in a box of the given sizes, row by row.
func places(sizes []int64, f func(at []int64)) {
	if slices.Contains(sizes, 0) {
		return
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

func inside(at, sizes []int64) bool {
	for i, p := range at {
		if p < 0 || p >= sizes[i] {
			return false
		}
	}
	return true
}

// operators compute the first output of a node. Inputs left out are nil. They are filled by
// the init functions of the files of this package.
var operators = map[string]func(n *onnx.Node, in []*Array) (*Array, error){}

// doubleSince tells from which operator set on the runtime computes an operator in double
// after all.
var doubleSince = map[string]int64{}
