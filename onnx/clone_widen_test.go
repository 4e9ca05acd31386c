package onnx

import (
	"bytes"
	"testing"
)

// TestCloneWiden: widening a clone leaves the original as it was, also in constants and
// types that attributes hold.
func TestCloneWiden(t *testing.T) {
	m := &Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &Graph{Name: "g",
		Nodes: []*Node{
			{Op: "Constant", Outputs: []string{"c"}, Attrs: []*Attribute{TensorAttr("value", NewFloat("", []int64{1}, []float32{2}))}},
			{Op: "Cast", Inputs: []string{"x"}, Outputs: []string{"h"}, Attrs: []*Attribute{IntAttr("to", int64(Float))}},
			{Op: "Mul", Inputs: []string{"h", "c"}, Outputs: []string{"y"}},
		},
		Inputs:     []*ValueInfo{{Name: "x", Type: Type{Elem: Float, HasShape: true}}},
		Outputs:    []*ValueInfo{{Name: "y", Type: Type{Elem: Float, HasShape: true}}},
		ValueInfos: []*ValueInfo{{Name: "h", Type: Type{Elem: Float, HasShape: true}}},
	}}
	before, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	if _, err := WidenDouble(c); err != nil {
		t.Fatal(err)
	}
	after, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("the original changed with its clone")
	}
	if widened, err := Encode(c); err != nil || bytes.Equal(widened, before) {
		t.Errorf("the clone was not widened (%v)", err)
	}
}
