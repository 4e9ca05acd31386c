package onnx

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestTensorAccess(t *testing.T) {
	raw := load(t, "raw.onnx").Graph
	signed, unsigned := []int64{0, -1, -2, -3, -5, -7}, []int64{0, 1, 2, 3, 5, 7}
	for name, want := range map[string][]int64{
		"int8": signed, "int16": signed, "int32": signed, "int64": signed,
		"uint8": unsigned, "uint16": unsigned, "uint32": unsigned, "uint64": unsigned,
		"bool": {0, 1, 0, 1, 1, 1},
	} {
		w := raw.Initializer(name)
		if v, err := w.Int64s(); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if v, err := w.Float64s(); err != nil || v[5] != float64(want[5]) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if _, err := w.Floats(); err == nil {
			t.Errorf("%s as floats", name)
		}
	}
	for _, name := range []string{"float", "double", "float16", "bfloat16"} {
		w := raw.Initializer(name)
		if v, err := w.Floats(); err != nil || !reflect.DeepEqual(v, []float32{0, -1, -2, -3, -5, -7}) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if v, err := w.Float64s(); err != nil || v[4] != -5 {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if _, err := w.Int64s(); err == nil {
			t.Errorf("%s as integers", name)
		}
	}
	if v, err := raw.Initializer("bool").Int64s(); err != nil || !reflect.DeepEqual(v, []int64{0, 1, 0, 1, 1, 1}) {
		t.Error(v, err)
	}
	for _, name := range []string{"string", "complex64", "int4", "float8e4m3fn", "float"} {
		w := raw.Initializer(name)
		if w == nil {
			t.Fatal(name)
		}
		if _, err := w.Int64s(); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(name, err)
		}
	}
	if _, err := raw.Initializer("complex128").Float64s(); err == nil {
		t.Error("complex numbers as float64")
	}
}

func TestTensorConstructors(t *testing.T) {
	dims := []int64{2, 2}
	f := NewFloat("f", dims, []float32{1, -2, float32(math.Inf(1)), 0.1})
	d := NewDouble("d", dims, []float64{1, -2, math.Pi, 0.1})
	h := NewFloat16("h", dims, []float32{1, -2, 65504, 0.1})
	i := NewInt64("i", dims, []int64{1, -2, math.MaxInt64, math.MinInt64})
	k := NewInt32("k", dims, []int32{1, -2, math.MaxInt32, math.MinInt32})
	b := NewBool("b", dims, []bool{true, false, false, true})
	dims[0] = 7 // a copy was made
	if v, err := f.Floats(); err != nil || v[3] != 0.1 || !math.IsInf(float64(v[2]), 1) {
		t.Error(v, err)
	}
	if v, err := d.Float64s(); err != nil || v[2] != math.Pi {
		t.Error(v, err)
	}
	if v, err := h.Floats(); err != nil || v[2] != 65504 || math.Abs(float64(v[3])-0.1) > 5e-5 {
		t.Error(v, err)
	}
	if v, err := i.Int64s(); err != nil || v[2] != math.MaxInt64 || v[3] != math.MinInt64 {
		t.Error(v, err)
	}
	if v, err := k.Int64s(); err != nil || v[2] != math.MaxInt32 || v[3] != math.MinInt32 {
		t.Error(v, err)
	}
	if v, err := b.Int64s(); err != nil || !reflect.DeepEqual(v, []int64{1, 0, 0, 1}) {
		t.Error(v, err)
	}
	if v, err := NewFloat("scalar", nil, []float32{4}).Floats(); err != nil || v[0] != 4 {
		t.Error(v, err)
	}
	if v, err := NewInt64("none", []int64{0, 3}, nil).Int64s(); err != nil || len(v) != 0 {
		t.Error(v, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for too few values")
		}
	}()
	NewFloat("f", []int64{3}, []float32{1})
}

func TestTensorBad(t *testing.T) {
	var format *FormatError
	for _, w := range []*Tensor{
		{Name: "short", Type: Float, Dims: []int64{3}, Raw: make([]byte, 8)},
		{Name: "huge", Type: Float, Dims: []int64{1 << 60}, Raw: make([]byte, 8)},
		{Name: "none", Type: Double, Dims: []int64{1}},
	} {
		if _, err := w.Floats(); !errors.As(err, &format) || !strings.Contains(err.Error(), w.Name) {
			t.Errorf("%s: %v", w.Name, err)
		}
	}
	for _, w := range []*Tensor{
		{Name: "overflow", Type: Float, Dims: []int64{1 << 40, 1 << 40}},
		{Name: "negative", Type: Float, Dims: []int64{-1}},
		{Name: "outside", Type: Float, Dims: []int64{1}, External: &External{Location: "f"}},
	} {
		if _, err := w.Floats(); err == nil || !strings.Contains(err.Error(), w.Name) {
			t.Errorf("%s: %v", w.Name, err)
		}
	}
	big := NewInt64("big", []int64{1}, []int64{-1})
	big.Type = Uint64
	if _, err := big.Int64s(); err == nil {
		t.Error("a uint64 that is no int64")
	}
	if v, err := big.Float64s(); err != nil || v[0] != 0x1p64 {
		t.Error(v, err)
	}
}
