package onnx

// scopeValues is what is known of the values of a graph and of those around it.
type scopeValues struct {
	vals   Values
	source map[string]*Tensor // constants
	up     *scopeValues
}

// enterScope infers the values of g, a graph of m that stands in up. Whatever
// contradicts itself is left unknown: this is not the place to refuse a model.
func enterScope(m *Model, g *Graph, up *scopeValues) *scopeValues {
	s := &scopeValues{source: map[string]*Tensor{}, up: up}
	inf := newInference(&Model{Graph: g, Opsets: m.Opsets}, nil)
	s.vals = inf.vals
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
	for _, n := range g.Nodes {
		for _, name := range n.Inputs {
			if inf.vals[name] == nil {
				if i := up.info(name); i != nil {
					inf.vals[name] = i
				}
			}
		}
		_ = inf.node(n)
		if n.Op == "Constant" && n.Domain == "" && len(n.Outputs) == 1 {
			s.source[n.Outputs[0]] = ConstantTensor(n)
		}
	}
	return s
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
