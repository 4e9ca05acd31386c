package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The constructors copy their arguments. They panic if the number of values is not the product of the
// dimensions.

// NewFloat returns a float32 tensor.
func NewFloat(name string, dims []int64, v []float32) *Tensor {
	t := newTensor(name, Float, dims, len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(t.Raw[4*i:], math.Float32bits(x))
	}
	return t
}

// NewFloat16 returns a float16 tensor of v, rounded to nearest.
func NewFloat16(name string, dims []int64, v []float32) *Tensor {
	t := newTensor(name, Float16, dims, len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint16(t.Raw[2*i:], Float16FromFloat32(x))
	}
	return t
}

// NewDouble returns a float64 tensor.
func NewDouble(name string, dims []int64, v []float64) *Tensor {
	t := newTensor(name, Double, dims, len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(t.Raw[8*i:], math.Float64bits(x))
	}
	return t
}

// NewInt64 returns an int64 tensor.
func NewInt64(name string, dims []int64, v []int64) *Tensor {
	t := newTensor(name, Int64, dims, len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(t.Raw[8*i:], uint64(x))
	}
	return t
}

// NewInt32 returns an int32 tensor.
func NewInt32(name string, dims []int64, v []int32) *Tensor {
	t := newTensor(name, Int32, dims, len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(t.Raw[4*i:], uint32(x))
	}
	return t
}

// NewBool returns a bool tensor.
func NewBool(name string, dims []int64, v []bool) *Tensor {
	t := newTensor(name, Bool, dims, len(v))
	for i, x := range v {
		if x {
			t.Raw[i] = 1
		}
	}
	return t
}

func newTensor(name string, typ DataType, dims []int64, n int) *Tensor {
	t := &Tensor{Name: name, Type: typ, Dims: slices.Clone(dims), Offset: -1}
	if want, err := t.Elements(); err != nil || want != int64(n) {
		panic(fmt.Sprintf("onnx: tensor %q of dimensions %v made from %d values", name, dims, n))
	}
	t.Raw = make([]byte, n*typ.Size())
	return t
}

// Floats returns the elements of a float tensor of any width as float32, rounded to nearest.
func (t *Tensor) Floats() ([]float32, error) {
	n, err := t.Count()
	if err != nil {
		return nil, err
	}
	v := make([]float32, n)
	le := binary.LittleEndian
	for i := range v {
		switch t.Type {
		case Float:
			v[i] = math.Float32frombits(le.Uint32(t.Raw[4*i:]))
		case Double:
			v[i] = float32(math.Float64frombits(le.Uint64(t.Raw[8*i:])))
		case Float16:
			v[i] = Float16ToFloat32(le.Uint16(t.Raw[2*i:]))
		case BFloat16:
			v[i] = bFloat16ToFloat32(le.Uint16(t.Raw[2*i:]))
		default:
			return nil, t.not("floats")
		}
	}
	return v, t.must(t.Type.IsFloat(), "floats")
}

// Float64s returns the elements of a numeric tensor of any type as float64. Integers above 2⁵³ are
// rounded to nearest.
func (t *Tensor) Float64s() ([]float64, error) {
	n, err := t.Count()
	if err != nil {
		return nil, err
	}
	v := make([]float64, n)
	for i := range v {
		switch t.Type {
		case Double:
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Raw[8*i:]))
		case Uint64:
			v[i] = float64(binary.LittleEndian.Uint64(t.Raw[8*i:]))
		case Float, Float16, BFloat16:
			f, err := t.Floats()
			for i := range f {
				v[i] = float64(f[i])
			}
			return v, err
		default:
			k, err := t.Int64s()
			for i := range k {
				v[i] = float64(k[i])
			}
			return v, err
		}
	}
	return v, t.must(t.Type.Size() > 0 && t.Type != Complex64 && t.Type != Complex128, "numbers")
}

// Int64s returns the elements of an integer tensor of any width, or of a bool tensor as 0 and 1. It
// returns an error for a uint64 above the largest int64.
func (t *Tensor) Int64s() ([]int64, error) {
	n, err := t.Count()
	if err != nil {
		return nil, err
	}
	v := make([]int64, n)
	le, b := binary.LittleEndian, t.Raw
	for i := range v {
		switch t.Type {
		case Int64, Uint64:
			v[i] = int64(le.Uint64(b[8*i:]))
			if t.Type == Uint64 && v[i] < 0 {
				return nil, fmt.Errorf("onnx: tensor %q: element %d is over the largest int64", t.Name, i)
			}
		case Int32:
			v[i] = int64(int32(le.Uint32(b[4*i:])))
		case Uint32:
			v[i] = int64(le.Uint32(b[4*i:]))
		case Int16:
			v[i] = int64(int16(le.Uint16(b[2*i:])))
		case Uint16:
			v[i] = int64(le.Uint16(b[2*i:]))
		case Int8:
			v[i] = int64(int8(b[i]))
		case Uint8:
			v[i] = int64(b[i])
		case Bool:
			v[i] = int64(min(b[i], 1))
		}
	}
	integer := t.Type >= Uint8 && t.Type <= Int64 || t.Type == Uint32 || t.Type == Uint64 || t.Type == Bool
	return v, t.must(integer, "integers")
}

// Count returns the number of elements. It returns an error unless Raw holds exactly that many.
func (t *Tensor) Count() (int, error) {
	n, err := t.Elements()
	if err != nil {
		return 0, err
	}
	if t.External != nil && t.Raw == nil {
		return 0, fmt.Errorf("onnx: tensor %q is stored in %q: read it with Model.Resolve", t.Name, t.External.Location)
	}
	size := int64(t.Type.Size())
	if size == 0 {
		return 0, t.not("numbers")
	}
	if n > math.MaxInt64/16 || n*size != int64(len(t.Raw)) {
		return 0, &FormatError{Offset: t.Offset, Field: fmt.Sprintf("tensor %q", t.Name),
			Reason: fmt.Sprintf("%d bytes of data for %v elements of dimensions %v", len(t.Raw), t.Type, t.Dims)}
	}
	return int(n), nil
}

func (t *Tensor) must(ok bool, what string) error {
	if ok {
		return nil
	}
	return t.not(what)
}

func (t *Tensor) not(what string) error {
	return fmt.Errorf("onnx: tensor %q holds %v elements, not %s", t.Name, t.Type, what)
}
