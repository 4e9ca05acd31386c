package rewrite

import (
	"fmt"

	"github.com/gradhop/gradhop/onnx"
)

// OwnWeights gives every product, convolution and transposition a copy of its own of a weight that several
// use, as a gradient uses the weights of its model. The copies of one weight share its bytes in
// m, and become copies in the file. Errors are those of [onnx.Model.Resolve].
//
// OpenVINO needs it, 2026.4 too: in float32 it packs a weight once, and where W and its transpose
// are both multiplied with, as in (x·Wᵀ)·W, it takes one for the other.
func OwnWeights(m *onnx.Model) error {
	used := map[string]bool{}
	for _, n := range m.Graph.Nodes {
		switch n.Op {
		case "MatMul", "Gemm", "Conv", "ConvTranspose", "Transpose":
		default:
			continue
		}
		for i, name := range n.Inputs {
			w := m.Graph.Initializer(name)
			if w == nil || i > 1 {
				continue
			}
			if !used[name] {
				used[name] = true
				continue
			}
			w, err := m.Resolve(w)
			if err != nil {
				return err
			}
			own := *w
			own.External, own.Offset = nil, -1 // one read from the same bytes is the same weight
			own.Name = fmt.Sprintf("%s/copy_%d", name, len(m.Graph.Initializers))
			m.Graph.Initializers = append(m.Graph.Initializers, &own)
			n.Inputs[i] = own.Name
		}
	}
	return nil
}
