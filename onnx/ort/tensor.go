package ort

// Tensor is a dense tensor in row-major order with its data in Go memory.
//
// As an output of [Session.Run], a Tensor with nil Data is allocated; one with
// Data is written in place and must have the shape that the run gives.
type Tensor struct {
	// Shape has one size for each dimension, each 0 or more. An empty or nil
	// Shape is a scalar, with one element.
	Shape []int64
	// Data is a []float32, []float64, []int64, []int32, []bool, []uint8 or
	// []int8 with exactly as many elements as Shape says.
	Data any
}

// Float64s returns the elements as numbers, with 1 for true. It returns Data itself if that is a
// []float64, and nil if Data has none of the types listed there.
func (t *Tensor) Float64s() []float64 {
	switch d := t.Data.(type) {
	case []float64:
		return d
	case []float32:
		return widen(d)
	case []int64:
		return widen(d)
	case []int32:
		return widen(d)
	case []uint8:
		return widen(d)
	case []int8:
		return widen(d)
	case []bool:
		out := make([]float64, len(d))
		for i, v := range d {
			if v {
				out[i] = 1
			}
		}
		return out
	}
	return nil
}

func widen[T float32 | int64 | int32 | uint8 | int8](d []T) []float64 {
	out := make([]float64, len(d))
	for i, v := range d {
		out[i] = float64(v)
	}
	return out
}
