package session

import (
	"math"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// CacheTokens is the number of tokens in one run of a text model on CPU. Past it the
// widest activations leave the cache: 2,400 tokens at once took 250 ms on a network of
// width 256 where 600 at a time took 195.
const CacheTokens = 768

// MixesRows reports whether a model rounds to integers by scales computed in each run over
// all rows (DynamicQuantizeLinear). The result for a row then depends on the other rows of
// the run, so each run must hold one chain.
func MixesRows(g *onnx.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return strings.HasPrefix(n.Op, "DynamicQuantize") })
}

// AllowedBias is what is added to scores before a softmax, [list, value]: -Inf where a
// value is not allowed. It has one row if every site has the same list.
func AllowedBias(s *energies.Space) *ort.Tensor {
	rows := max(1, min(len(s.Allowed), s.Sites))
	v := make([]float32, rows*s.Values)
	if len(s.Allowed) > 0 {
		for i := range v {
			v[i] = float32(math.Inf(-1))
		}
		for r := range rows {
			for _, a := range s.Allowed[r] {
				v[r*s.Values+int(a)] = 0
			}
		}
	}
	return &ort.Tensor{Shape: []int64{int64(rows), int64(s.Values)}, Data: v}
}
