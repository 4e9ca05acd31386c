package rewrite

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// PruneInputs removes the inputs of g that nothing reads: no node, no graph inside a node,
// such as a branch of an If, and no output.
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
