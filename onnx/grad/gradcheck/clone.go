package gradcheck

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// deepClone returns a copy of m of which attributes can be changed as well.
func deepClone(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	for _, f := range m.Functions {
		cloneAttrs(f.Nodes)
	}
	cloneAttrs(m.Graph.Nodes)
	return m
}

func cloneAttrs(nodes []*onnx.Node) {
	for _, n := range nodes {
		for i, a := range n.Attrs {
			k := *a
			k.Tensors = slices.Clone(a.Tensors)
			n.Attrs[i] = &k
			if a.G != nil {
				cloneAttrs(a.G.Nodes)
			}
			for _, g := range a.Graphs {
				cloneAttrs(g.Nodes)
			}
		}
	}
}
