// Package session runs rewritten graphs. It contains the code shared by all energies that run a model.
package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	weights *ort.Weights                            // nil without
	reopen  func(context.Context) (*Session, error) // nil unless weights are constants of the session

	mu     sync.Mutex
	verify *verification // nil: done, or on the CPU provider
}

// Open encodes a rewritten model, leaving weights in the user's file where possible, and opens a
// session. The first run compares a provider other than the CPU's with it, so g must not be modified.
func Open(ctx context.Context, g *onnx.Model, o ort.Options) (*Session, error) {
	openvino := o.OpenVINO("", "")
	if openvino || o.Int8() {
		g = g.Clone()
		if err := rewrite.DecodeWeights(g); err != nil {
			return nil, err
		}
	}
	if openvino {
		if err := rewrite.TurnKernels(g); err != nil {
			return nil, err
		}
		rewrite.OwnWeights(g)
	}
	s, err := open(ctx, g, o)
	if err == nil && ort.Tolerance(s.session.Provider()) > 0 {
		s.verify = &verification{g, o, s.session.Provider()}
	}
	return s, err
}

// OpenWeights is Open for a model in training: the given inputs are weights, whose elements change
// between runs; see [Session.Update]. A plug-in gets them as constants.
func OpenWeights(ctx context.Context, g *onnx.Model, weights map[string]*ort.Tensor, o ort.Options) (*Session, error) {
	if o.Plugin() && len(weights) > 0 {
		reopen := func(ctx context.Context) (*Session, error) {
			fixed := g.Clone()
			for _, name := range slices.Sorted(maps.Keys(weights)) {
				t := weights[name]
				rewrite.Fix(fixed.Graph, onnx.NewFloat(name, t.Shape, t.Data.([]float32)))
			}
			return Open(ctx, fixed, o)
		}
		s, err := reopen(ctx)
		if err == nil {
			s.reopen = reopen
		}
		return s, err
	}
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

// Update reads the elements of the weights anew. Where they are constants, it opens the session
// anew; a provider that was verified is not verified again. No run may be under way.
func (s *Session) Update(ctx context.Context) error {
	if s.weights != nil {
		s.weights.Update()
	}
	if s.reopen == nil {
		return nil
	}
	next, err := s.reopen(ctx)
	if err != nil {
		return err
	}
	if s.verify != nil {
		s.verify = next.verify
	}
	old := s.session
	s.session, s.inputs = next.session, next.inputs
	return old.Close()
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
