package ort

import (
	"fmt"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"
)

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

// element is what a Tensor can carry.
type element interface {
	float32 | float64 | int64 | int32 | bool | uint8 | int8
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

// A bound is a Tensor handed to the runtime for one run.
type bound struct {
	value ort.Value
	// finish, if not nil, copies a result to the Tensor after the run.
	finish func()
}

// bind makes the runtime's view of t, on the memory of t.Data, which is pinned
// with pin until the run is over: the runtime writes and reads there through a
// pointer that the Go runtime does not know. It returns the reason when t does
// not fit v.
func bind(t *Tensor, v *valueInfo, pin *runtime.Pinner) (bound, string) {
	switch d := t.Data.(type) {
	case []float32:
		return bindData(t.Shape, d, elemFloat32, v, pin)
	case []float64:
		return bindData(t.Shape, d, elemFloat64, v, pin)
	case []int64:
		return bindData(t.Shape, d, elemInt64, v, pin)
	case []int32:
		return bindData(t.Shape, d, elemInt32, v, pin)
	case []bool:
		return bindData(t.Shape, d, elemBool, v, pin)
	case []uint8:
		return bindData(t.Shape, d, elemUint8, v, pin)
	case []int8:
		return bindData(t.Shape, d, elemInt8, v, pin)
	}
	return bound{}, unsupportedData
}

// unsupportedData is the reason for which [Session.Run] returns an *onnx.UnsupportedError.
const unsupportedData = "unsupported"

func bindData[T element](shape []int64, data []T, elem elemType, v *valueInfo, pin *runtime.Pinner) (bound, string) {
	if v.elem != 0 && v.elem != elem {
		return bound{}, fmt.Sprintf("the data are %s, the model wants %s", elem, v.elem)
	}
	if why := v.fit(shape); why != "" {
		return bound{}, why
	}
	n, ok := elements(shape)
	if !ok {
		return bound{}, fmt.Sprintf("the shape %v is not one of a tensor", shape)
	}
	if n != len(data) {
		return bound{}, fmt.Sprintf("the shape %v has %d elements, the data have %d", shape, n, len(data))
	}
	if len(shape) == 0 {
		// The binding keeps a scalar's element in memory of its own.
		s, err := ort.NewScalar(data[0])
		if err != nil {
			return bound{}, cause(err).Error()
		}
		return bound{value: s, finish: func() { data[0] = s.GetData() }}, ""
	}
	if n > 0 {
		pin.Pin(&data[0])
	}
	t, err := ort.NewTensor(shape, data)
	if err != nil {
		return bound{}, cause(err).Error()
	}
	return bound{value: t}, ""
}

// fit compares a shape with the declared one and returns the difference, or "".
func (v *valueInfo) fit(shape []int64) string {
	if !v.ranked {
		return ""
	}
	ok := len(shape) == len(v.dims)
	for i := 0; ok && i < len(shape); i++ {
		ok = v.dims[i] < 0 || v.dims[i] == shape[i]
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("the shape is %v, the model wants %s", shape, dimString(v.dims))
}

func dimString(dims []int64) string {
	s := "["
	for i, d := range dims {
		if i > 0 {
			s += " "
		}
		if d < 0 {
			s += "?"
		} else {
			s += fmt.Sprint(d)
		}
	}
	return s + "]"
}

// elements is the number of elements of a shape; false for negative sizes and
// for more elements than memory can hold.
func elements(shape []int64) (int, bool) {
	n, zero := int64(1), false
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			zero = true
			continue
		}
		if n > (1<<47)/d {
			return 0, false
		}
		n *= d
	}
	if zero {
		return 0, true
	}
	return int(n), true
}

// scalar makes data for a scalar of a declared type.
func scalar(e elemType) any {
	switch e {
	case elemFloat64:
		return make([]float64, 1)
	case elemInt64:
		return make([]int64, 1)
	case elemInt32:
		return make([]int32, 1)
	case elemBool:
		return make([]bool, 1)
	case elemUint8:
		return make([]uint8, 1)
	case elemInt8:
		return make([]int8, 1)
	}
	return make([]float32, 1)
}

// take moves a result that the runtime allocated into t. The binding has
// already copied it to Go memory.
func take(t *Tensor, v ort.Value) bool {
	switch r := v.(type) {
	case *ort.Tensor[float32]:
		t.Data = r.GetData()
	case *ort.Tensor[float64]:
		t.Data = r.GetData()
	case *ort.Tensor[int64]:
		t.Data = r.GetData()
	case *ort.Tensor[int32]:
		t.Data = r.GetData()
	case *ort.Tensor[bool]:
		t.Data = r.GetData()
	case *ort.Tensor[uint8]:
		t.Data = r.GetData()
	case *ort.Tensor[int8]:
		t.Data = r.GetData()
	default:
		return false
	}
	t.Shape = v.GetShape()
	return true
}
