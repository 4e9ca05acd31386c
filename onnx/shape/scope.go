package shape

import "github.com/gradhop/gradhop/onnx"

// Scope is what is known of the values of a graph and of those around it.
type Scope struct {
	Vals   Values
	inf    *Inference
	Source map[string]*onnx.Tensor // constants
	Up     *Scope
}

// EnterScope begins with the inputs and constants of g, a graph of m that stands in
// up; the nodes follow one by one. Whatever contradicts itself is left unknown: this
// is not the place to refuse a model.
func EnterScope(m *onnx.Model, g *onnx.Graph, up *Scope) *Scope {
	inf := NewInference(&onnx.Model{Graph: g, Opsets: m.Opsets}, nil)
	s := &Scope{Vals: inf.Vals, inf: inf, Source: map[string]*onnx.Tensor{}, Up: up}
	for _, t := range g.Initializers {
		s.Source[t.Name] = t
	}
	for _, v := range g.Inputs {
		// A default, which a caller may replace; before version 4 of the format every
		// initialiser was listed as an input.
		if s.Source[v.Name] != nil && m.IRVersion >= 4 {
			delete(s.Source, v.Name)
			s.Vals[v.Name] = inf.stateInfo(v)
		}
	}
	return s
}

// Add infers what n writes.
func (s *Scope) Add(n *onnx.Node) {
	for _, name := range n.Inputs {
		if s.Vals[name] == nil {
			if i := s.Up.Info(name); i != nil {
				s.Vals[name] = i
			}
		}
	}
	_ = s.inf.Node(n)
	if n.Op == "Constant" && n.Domain == "" && len(n.Outputs) == 1 {
		s.Source[n.Outputs[0]] = ConstantTensor(n)
	}
}

// Info returns what is known of a value, or nil.
func (s *Scope) Info(name string) *Info {
	for ; s != nil; s = s.Up {
		if i := s.Vals[name]; i != nil {
			return i
		}
	}
	return nil
}

// Constant returns the tensor that name stands for, or nil.
func (s *Scope) Constant(name string) *onnx.Tensor {
	for ; s != nil; s = s.Up {
		if t := s.Source[name]; t != nil || s.Vals[name] != nil {
			return t
		}
	}
	return nil
}
