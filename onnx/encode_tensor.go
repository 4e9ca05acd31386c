package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// attribute writes the value of a's type, even if it is zero, since readers distinguish a zero from a
// missing value.
func (w *writer) attribute(a *Attribute) {
	w.text(1, a.Name)
	if a.RefName == "" {
		w.value(a)
	}
	w.text(13, a.Doc)
	late := a.Type == AttrSparse || a.Type == AttrSparses // in the order of field numbers
	if !late {
		w.b = append(w.b, a.Other...)
	}
	if a.Type != AttrUndefined {
		w.int(20, int64(a.Type))
	}
	w.text(21, a.RefName)
	if late {
		w.b = append(w.b, a.Other...)
	}
}

func (w *writer) value(a *Attribute) {
	switch a.Type {
	case AttrFloat:
		w.float(2, a.F)
	case AttrInt:
		w.int(3, a.I)
	case AttrString:
		w.bytes(4, a.S)
	case AttrTensor:
		if a.T != nil {
			w.message(5, func(w *writer) { w.tensor(a.T) })
		}
	case AttrGraph:
		if a.G != nil {
			w.message(6, func(w *writer) { w.graph(a.G) })
		}
	case AttrFloats:
		for _, v := range a.Floats {
			w.float(7, v)
		}
	case AttrInts:
		for _, v := range a.Ints {
			w.int(8, v)
		}
	case AttrStrings:
		for _, v := range a.Strings {
			w.bytes(9, v)
		}
	case AttrTensors:
		for _, t := range a.Tensors {
			w.message(10, func(w *writer) { w.tensor(t) })
		}
	case AttrGraphs:
		for _, g := range a.Graphs {
			w.message(11, func(w *writer) { w.graph(g) })
		}
	}
}

func (w *writer) tensor(t *Tensor) {
	for _, d := range t.Dims {
		w.int(1, d)
	}
	w.int(2, int64(t.Type))
	if t.External == nil {
		for _, v := range t.Strings {
			w.bytes(6, v)
		}
	}
	w.text(8, t.Name)
	if t.Raw != nil && t.External == nil {
		w.bytes(9, t.Raw)
	}
	w.text(12, t.Doc)
	if t.External != nil {
		w.externalData(t.External)
	}
	w.b = append(w.b, t.Other...)
}

func (w *writer) values(num protowire.Number, list []*ValueInfo) {
	for _, v := range list {
		w.message(num, func(w *writer) { w.valueInfo(v) })
	}
}

func (w *writer) valueInfo(v *ValueInfo) {
	w.text(1, v.Name)
	switch t := &v.Type; {
	case t.Other != nil:
		w.bytes(2, t.Other)
	case t.Elem != Undefined || t.HasShape || t.Denotation != "":
		w.message(2, func(w *writer) { w.typeProto(t) })
	}
	w.text(3, v.Doc)
	w.b = append(w.b, v.Other...)
}

func (w *writer) typeProto(t *Type) {
	if t.Elem != Undefined || t.HasShape {
		w.message(1, func(w *writer) {
			w.int(1, int64(t.Elem))
			if t.HasShape {
				w.message(2, func(w *writer) { w.shape(t.Shape) })
			}
		})
	}
	w.text(6, t.Denotation)
}

func (w *writer) shape(dims []ShapeDim) {
	for _, d := range dims {
		w.message(1, func(w *writer) {
			if d.Param != "" {
				w.text(2, d.Param)
			} else if d.Value >= 0 {
				w.int(1, d.Value)
			}
			w.text(3, d.Denotation)
		})
	}
}
