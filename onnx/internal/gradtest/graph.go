package gradtest

import (
	"strings"

	"github.com/gradhop/gradhop/onnx"
)

// Graph is an attribute that holds a graph: typed inputs such as "s" or "i:int64", names of outputs, and nodes as "y = Op a b", each
// followed by its attributes.
func (g *Gen) Graph(attr, inputs, outputs string, nodes ...any) *onnx.Attribute {
	types := map[string]onnx.DataType{"": g.Elem, "int64": onnx.Int64, "bool": onnx.Bool}
	k := &onnx.Graph{Name: attr}
	list := func(text string) (out []*onnx.ValueInfo) {
		for _, f := range strings.Fields(text) {
			name, kind, _ := strings.Cut(f, ":")
			out = append(out, &onnx.ValueInfo{Name: name, Type: onnx.Type{Elem: types[kind], HasShape: kind != ""}})
		}
		return out
	}
	k.Inputs, k.Outputs = list(inputs), list(outputs)
	for _, n := range nodes {
		switch n := n.(type) {
		case string:
			f := strings.Fields(n)
			k.Nodes = append(k.Nodes, &onnx.Node{Op: f[2], Name: f[0], Inputs: f[3:], Outputs: f[:1]})
		case *onnx.Attribute:
			last := k.Nodes[len(k.Nodes)-1]
			last.Attrs = append(last.Attrs, n)
		}
	}
	return &onnx.Attribute{Name: attr, Type: onnx.AttrGraph, G: k}
}
