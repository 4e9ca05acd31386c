package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"google.golang.org/protobuf/encoding/protowire"
)

// shapeOf is the kind of content of a field in an encoded type.
type shapeOf int

const (
	elemType shapeOf = iota + 1 // an element type
	inTensor                    // TypeProto.Tensor or SparseTensor
	inList                      // TypeProto.Sequence or Optional
	inMap                       // TypeProto.Map
	inType                      // TypeProto
	inSparse                    // SparseTensorProto
	inValues                    // TensorProto
)

var typeFields = map[protowire.Number]shapeOf{1: inTensor, 8: inTensor, 4: inList, 9: inList, 5: inMap}

var fieldsOf = map[shapeOf]map[protowire.Number]shapeOf{
	inTensor: {1: elemType}, inList: {1: inType}, inMap: {2: inType}, inType: typeFields,
	inSparse: {1: inValues}, inValues: {2: elemType}, // inspected, not rewritten
}

// encoded widens the element types in an encoded message with the given fields. Everything else is
// kept.
func (w *widener) encoded(where string, b []byte, fields map[protowire.Number]shapeOf) []byte {
	out, ok := w.rewrite(b, fields, 0)
	if !ok && w.err == nil {
		w.err = &onnx.FormatError{Path: w.m.Path, Offset: -1, Field: where, Reason: "its type is not valid"}
	}
	return out
}

func (w *widener) rewrite(b []byte, fields map[protowire.Number]shapeOf, depth int) ([]byte, bool) {
	if depth > 4*onnx.MaxNesting {
		return b, false
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return nil, false
		}
		field := b[:n]
		b = b[n:]
		_, _, tag := protowire.ConsumeTag(field)
		switch kind := fields[num]; {
		case kind == elemType && typ == protowire.VarintType:
			if v, _ := protowire.ConsumeVarint(field[tag:]); w.narrow(onnx.DataType(v)) {
				w.changed = true
				out = append(protowire.AppendTag(out, num, typ), byte(w.to))
				continue
			}
		case kind > elemType && typ == protowire.BytesType:
			in, _ := protowire.ConsumeBytes(field[tag:])
			in, ok := w.rewrite(in, fieldsOf[kind], depth+1)
			if !ok {
				return nil, false
			}
			out = protowire.AppendBytes(protowire.AppendTag(out, num, typ), in)
			continue
		}
		out = append(out, field...)
	}
	return out, true
}

// sparse reports whether a holds sparse tensors of a type to widen.
func (w *widener) sparse(a *onnx.Attribute) bool {
	look := widener{narrow: w.narrow, to: w.to}
	_, _ = look.rewrite(a.Other, map[protowire.Number]shapeOf{22: inSparse, 23: inSparse}, 0)
	return look.changed
}

// defaultTypes maps operators without typed inputs to the attribute for the output type, whose default
// is float.
var defaultTypes = map[string]string{
	"RandomNormal": "dtype", "RandomUniform": "dtype", "BlackmanWindow": "output_datatype", "HammingWindow": "output_datatype",
	"HannWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
}

func (w *widener) defaults(n *onnx.Node) {
	if n.Domain != "" {
		return
	}
	if name := defaultTypes[n.Op]; name != "" && n.Attr(name) == nil {
		n.Attrs, w.changed = append(n.Attrs, onnx.IntAttr(name, int64(onnx.Double))), true
	}
	if n.Op == "ConstantOfShape" && n.Attr("value") == nil {
		n.Attrs, w.changed = append(n.Attrs, onnx.TensorAttr("value", onnx.NewDouble("", []int64{1}, []float64{0}))), true
	}
	if n.Op != "Constant" {
		return
	}
	for i, a := range n.Attrs {
		switch {
		case a.RefName != "" && (a.Name == "value_float" || a.Name == "value_floats"):
			if w.refused == "" {
				w.changed, w.refused = true, n.Label()
			}
		case a.Name == "value_float":
			n.Attrs[i], w.changed = onnx.TensorAttr("value", onnx.NewDouble("", nil, []float64{float64(a.F)})), true
		case a.Name == "value_floats":
			v := make([]float64, len(a.Floats))
			for k, f := range a.Floats {
				v[k] = float64(f)
			}
			n.Attrs[i], w.changed = onnx.TensorAttr("value", onnx.NewDouble("", []int64{int64(len(v))}, v)), true
		}
	}
}
