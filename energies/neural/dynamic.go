package neural

import (
	"slices"
	"strings"

	"github.com/gradhop/gradhop/onnx"
)

// mixesRows reports whether a model rounds what it computes to integers by scales that it
// finds in each run, over all rows: what comes out of a row then depends on the rows beside
// it, so that only what belongs together may go into one run.
func mixesRows(g *onnx.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return strings.HasPrefix(n.Op, "DynamicQuantize") })
}
