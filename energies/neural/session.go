package neural

import (
	"context"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// session is an opened graph with the order of its inputs.
type session struct {
	session *ort.Session
	inputs  []string
}

// open writes a rewritten model, with weights left in the user's file where they
// are in one, and opens a session on it.
func open(g *onnx.Model, o ort.Options) (*session, error) {
	proto, dir, err := onnx.EncodeReferencing(g)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		o.ExternalDir = dir
	}
	s := &session{}
	var outputs []string
	for _, v := range g.Graph.Inputs {
		s.inputs = append(s.inputs, v.Name)
	}
	for _, v := range g.Graph.Outputs {
		outputs = append(outputs, v.Name)
	}
	s.session, err = ort.Open(proto, s.inputs, outputs, o)
	return s, err
}

// run evaluates the graph with inputs by name.
func (s *session) run(ctx context.Context, in map[string]*ort.Tensor, out []*ort.Tensor) error {
	list := make([]*ort.Tensor, len(s.inputs))
	for i, name := range s.inputs {
		list[i] = in[name]
	}
	return s.session.Run(ctx, list, out)
}
