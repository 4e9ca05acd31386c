package rewrite

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// PruneInputs removes the inputs of g that no node, subgraph or output reads.
func PruneInputs(g *onnx.Graph) {
	read := map[string]bool{}
	note := func(v string) string {
		read[v] = true
		return v
	}
	for _, v := range g.Outputs {
		note(v.Name)
	}
	for _, n := range g.Nodes {
		for _, v := range n.Inputs {
			note(v)
		}
		n.Captured(note)
	}
	g.Inputs = slices.DeleteFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return !read[v.Name] })
}

// Fix makes constants of values, in place: each tensor becomes the initialiser of its name,
// instead of an input or an initialiser that g has.
func Fix(g *onnx.Graph, values ...*onnx.Tensor) {
	named := map[string]bool{}
	for _, t := range values {
		named[t.Name] = true
	}
	g.Inputs = slices.DeleteFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return named[v.Name] })
	g.Initializers = append(slices.DeleteFunc(g.Initializers, func(t *onnx.Tensor) bool { return named[t.Name] }), values...)
}
