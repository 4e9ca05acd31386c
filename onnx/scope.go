package onnx

// scopeValues is what is known of the values of a graph and of those around it.
type scopeValues struct {
	vals   Values
	inf    *inference
	source map[string]*Tensor // constants
	up     *scopeValues
}

// enterScope begins with the inputs and constants of g, a graph of m that stands in
// up; the nodes follow one by one. Whatever contradicts itself is left unknown: this
// is not the place to refuse a model.
func enterScope(m *Model, g *Graph, up *scopeValues) *scopeValues {
	inf := newInference(&Model{Graph: g, Opsets: m.Opsets}, nil)
	s := &scopeValues{vals: inf.vals, inf: inf, source: map[string]*Tensor{}, up: up}
	for _, t := range g.Initializers {
		s.source[t.Name] = t
	}
	for _, v := range g.Inputs {
		// A default, which a caller may replace; before version 4 of the format every
		// initialiser was listed as an input.
		if s.source[v.Name] != nil && m.IRVersion >= 4 {
			delete(s.source, v.Name)
			s.vals[v.Name] = inf.stateInfo(v)
		}
	}
	return s
}

// add infers what n writes.
func (s *scopeValues) add(n *Node) {
	for _, name := range n.Inputs {
		if s.vals[name] == nil {
			if i := s.up.info(name); i != nil {
				s.vals[name] = i
			}
		}
	}
	_ = s.inf.node(n)
	if n.Op == "Constant" && n.Domain == "" && len(n.Outputs) == 1 {
		s.source[n.Outputs[0]] = ConstantTensor(n)
	}
}

// info returns what is known of a value, or nil.
func (s *scopeValues) info(name string) *Info {
	for ; s != nil; s = s.up {
		if i := s.vals[name]; i != nil {
			return i
		}
	}
	return nil
}

// constant returns the tensor that name stands for, or nil.
func (s *scopeValues) constant(name string) *Tensor {
	for ; s != nil; s = s.up {
		if t := s.source[name]; t != nil || s.vals[name] != nil {
			return t
		}
	}
	return nil
}
