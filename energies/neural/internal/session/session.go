// Package session runs rewritten graphs. It contains the code shared by all energies that run a model.
package session

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// Session is an open model with the order of its inputs.
type Session struct {
	session *ort.Session
	inputs  []string
	weights *ort.Weights // nil without

	mu     sync.Mutex
	verify *verification // nil: done, or on the CPU provider
}

// Open encodes a rewritten model, leaving weights in the user's file where possible, and opens a
// session. The first run compares a provider other than the CPU's with it, so g must not be modified.
func Open(ctx context.Context, g *onnx.Model, o ort.Options) (*Session, error) {
	openvino := strings.HasPrefix(o.Provider, "openvino")
	if openvino || o.Int8() {
		g = g.Clone()
		if err := rewrite.DecodeWeights(g); err != nil {
			return nil, err
		}
	}
	if openvino {
		rewrite.OwnWeights(g)
	}
	s, err := open(ctx, g, o)
	if err == nil && ort.Tolerance(s.session.Provider()) > 0 {
		s.verify = &verification{g, o, s.session.Provider()}
	}
	return s, err
}

// OpenWeights is Open for a model in training: the given inputs are weights, whose elements change
// between runs; see [Session.Update].
func OpenWeights(ctx context.Context, g *onnx.Model, weights map[string]*ort.Tensor, o ort.Options) (*Session, error) {
	g, w, err := ort.Arrange(ctx, g, weights, o)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, g, o)
	if err == nil {
		s.weights = w
	}
	return s, err
}

// Update reads the elements of the weights anew.
func (s *Session) Update() {
	if s.weights != nil {
		s.weights.Update()
	}
}

// open is Open without the comparison.
func open(ctx context.Context, g *onnx.Model, o ort.Options) (*Session, error) {
	if o.Int8() {
		g = g.Clone()
		if _, err := rewrite.Int8(g); err != nil {
			return nil, err
		}
	}
	proto, dir, err := onnx.EncodeReferencing(g)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		o.ExternalDir = dir
	}
	s := &Session{}
	var outputs []string
	for _, v := range g.Graph.Inputs {
		s.inputs = append(s.inputs, v.Name)
	}
	for _, v := range g.Graph.Outputs {
		outputs = append(outputs, v.Name)
	}
	if s.session, err = ort.Open(ctx, proto, s.inputs, outputs, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Run evaluates the model. Inputs are given by name, outputs in order. The first run verifies the
// provider.
func (s *Session) Run(ctx context.Context, in map[string]*ort.Tensor, out []*ort.Tensor) error {
	if err := s.verified(ctx, in); err != nil {
		return err
	}
	return s.run(ctx, in, out)
}

// verified verifies the provider once.
func (s *Session) verified(ctx context.Context, in map[string]*ort.Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verify == nil {
		return nil
	}
	if err := s.verify.verify(ctx, s, in); err != nil {
		return err
	}
	s.verify = nil
	return nil
}

func (s *Session) run(ctx context.Context, in map[string]*ort.Tensor, out []*ort.Tensor) error {
	list := make([]*ort.Tensor, len(s.inputs))
	for i, name := range s.inputs {
		list[i] = in[name]
		if s.weights != nil && s.weights.Inputs[name] != nil {
			list[i] = s.weights.Inputs[name]
		}
	}
	return s.session.Run(ctx, list, out)
}

// Close releases the session.
func (s *Session) Close() error { return s.session.Close() }

// Signature lists the inputs and outputs of a model for error messages.
func Signature(g *onnx.Graph) string {
	var in, out []string
	for _, v := range g.Inputs {
		in = append(in, v.Name)
	}
	for _, v := range g.Outputs {
		out = append(out, v.Name)
	}
	return fmt.Sprintf("inputs %s and outputs %s", strings.Join(in, ", "), strings.Join(out, ", "))
}

// CheckInt8 returns an *ort.UnavailableError where o names the provider cpu,int8, which would run m as
// cpu does.
func CheckInt8(m *onnx.Model, o ort.Options) error {
	if !o.Int8() {
		return nil
	}
	m = m.Clone()
	if err := rewrite.DecodeWeights(m); err != nil {
		return err
	}
	n, err := rewrite.Int8(m)
	if err == nil && n == 0 {
		err = &ort.UnavailableError{What: "provider cpu,int8 rounds large products with constant matrices, and the model has none", Do: o.WithoutProvider()}
	}
	return err
}
