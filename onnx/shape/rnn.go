package shape

import "github.com/gradhop/gradhop/onnx"

func init() { register(inferRecurrent, "LSTM", "GRU", "RNN") }

// inferRecurrent: input [steps, batch, input], or [batch, steps, input] with layout 1; recurrence
// weights [directions, ·, hidden]. Outputs: all states, the last state, the last cell.
func inferRecurrent(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x, r := arg(in, 0), arg(in, 2)
	if x.Rank() != 3 || r.Rank() != 3 {
		return nil, nil
	}
	dirs, hidden := r.Shape[0], r.Shape[2]
	if n.Str("direction", "forward") == "bidirectional" {
		dirs = D(2)
	}
	if h := n.Int("hidden_size", 0); h > 0 {
		hidden = D(h)
	}
	y, last := []Dim{x.Shape[0], dirs, x.Shape[1], hidden}, []Dim{dirs, x.Shape[1], hidden}
	if n.Int("layout", 0) != 0 {
		y, last = []Dim{x.Shape[0], x.Shape[1], dirs, hidden}, []Dim{x.Shape[0], dirs, hidden}
	}
	return []*Info{{Type: x.Type, Known: true, Shape: y}, {Type: x.Type, Known: true, Shape: last}, {Type: x.Type, Known: true, Shape: last}}, nil
}
