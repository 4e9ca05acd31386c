package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/onnx"
)

// Level returns base, or base with the first number from 2 on, so that no value of g
// has a name that begins with it and a slash: the gradient of a gradient is "grad2/x"
// where that of the first is "grad/x".
func Level(g *onnx.Graph, base string) string {
	for k := 1; ; k++ {
		name := base
		if k > 1 {
			name = fmt.Sprintf("%s%d", base, k)
		}
		begins := func(v string) bool { return strings.HasPrefix(v, name+"/") }
		if !slices.ContainsFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return begins(v.Name) }) &&
			!slices.ContainsFunc(g.Initializers, func(t *onnx.Tensor) bool { return begins(t.Name) }) &&
			!slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return slices.ContainsFunc(n.Outputs, begins) }) {
			return name
		}
	}
}
