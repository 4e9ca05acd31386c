package onnx

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// attrFields maps the field number of a value to the attribute type.
var attrFields = map[protowire.Number]AttrType{
	2: AttrFloat, 3: AttrInt, 4: AttrString, 5: AttrTensor, 6: AttrGraph, 7: AttrFloats,
	8: AttrInts, 9: AttrStrings, 10: AttrTensors, 11: AttrGraphs,
	22: AttrSparse, 23: AttrSparses, 14: AttrTypeProto, 15: AttrTypeProtos,
}

// Types whose values stay encoded in Attribute.Other.
const (
	AttrSparse     AttrType = 11
	AttrSparses    AttrType = 12
	AttrTypeProto  AttrType = 13
	AttrTypeProtos AttrType = 14
)

// attrNames are the types as spelled in operators.tsv.
var attrNames = [...]string{"undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
	"graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"}

// String returns the type in words, or "kind N" if N is unknown.
func (t AttrType) String() string {
	if t < 0 || int(t) >= len(attrNames) {
		return fmt.Sprintf("kind %d", int32(t))
	}
	return strings.ReplaceAll(attrNames[t], "_", " ")
}

func (d *decoder) attribute(s *scan, depth int) *Attribute {
	a := &Attribute{}
	var seen AttrType // type of the values read so far
	for s.next() {
		switch s.num {
		case 1:
			a.Name = s.text()
		case 13:
			a.Doc = s.text()
		case 20:
			a.Type = AttrType(s.int32())
		case 21:
			a.RefName = s.text()
		}
		kind, ok := attrFields[s.num]
		switch {
		case !ok:
		case seen != AttrUndefined && seen != kind:
			s.fail("an attribute has values of kinds %d and %d", seen, kind)
		default:
			seen = kind
			d.value(s, a, depth)
		}
	}
	if a.Type == AttrUndefined {
		a.Type = seen // files of the first versions omit the type
	}
	switch {
	case a.Name == "":
		s.fail("an attribute without a name")
	case seen != AttrUndefined && seen != a.Type:
		s.fail("attribute %q of kind %d has a value of kind %d", a.Name, a.Type, seen)
	case a.RefName == "" && (a.Type == AttrTensor && a.T == nil || a.Type == AttrGraph && a.G == nil):
		s.fail("attribute %q has no value", a.Name)
	}
	return a
}

// value decodes the current field: a value of the attribute, or one element of its list.
func (d *decoder) value(s *scan, a *Attribute, depth int) {
	switch s.num {
	case 2:
		a.F = s.float()
	case 3:
		a.I = s.int()
	case 4:
		a.S = s.bytes()
	case 5:
		if a.T != nil {
			s.fail("a second tensor in one attribute")
		}
		a.T = d.tensor(s.enter("t", -1))
	case 6:
		if a.G != nil {
			s.fail("a second graph in one attribute")
		}
		a.G = new(Graph)
		d.graph(s.enter("g", -1), a.G, depth+1)
	case 7:
		a.Floats = s.floats(a.Floats)
	case 8:
		a.Ints = s.ints(a.Ints)
	case 9:
		a.Strings = append(a.Strings, s.bytes())
	case 10:
		a.Tensors = append(a.Tensors, d.tensor(s.enter("tensors", len(a.Tensors))))
	case 11:
		g := new(Graph)
		a.Graphs = append(a.Graphs, g)
		d.graph(s.enter("graphs", len(a.Graphs)-1), g, depth+1)
	default:
		s.bytes()
		s.keep(&a.Other)
	}
}
