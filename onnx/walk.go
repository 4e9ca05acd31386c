package onnx

import "slices"

// MapTensors returns a copy of m in which every tensor is replaced by f(t, initializer). Initializer is
// true for a graph initialiser and false for a tensor in an attribute. Unchanged parts are shared with
// m.
func MapTensors(m *Model, f func(t *Tensor, initializer bool) (*Tensor, error)) (*Model, error) {
	out := *m
	var err error
	if out.Graph, err = mapGraph(m.Graph, f); err != nil {
		return nil, err
	}
	out.Functions = slices.Clone(m.Functions)
	for i, fn := range m.Functions {
		c := *fn
		if c.Nodes, err = mapNodes(fn.Nodes, f); err != nil {
			return nil, err
		}
		if c.AttributeProtos, err = mapAttrs(fn.AttributeProtos, f); err != nil {
			return nil, err
		}
		out.Functions[i] = &c
	}
	return &out, nil
}

func mapGraph(g *Graph, f func(*Tensor, bool) (*Tensor, error)) (*Graph, error) {
	if g == nil {
		return nil, nil
	}
	out := *g
	out.Initializers = slices.Clone(g.Initializers)
	var err error
	for i, t := range g.Initializers {
		if out.Initializers[i], err = f(t, true); err != nil {
			return nil, err
		}
	}
	out.Nodes, err = mapNodes(g.Nodes, f)
	return &out, err
}

func mapNodes(nodes []*Node, f func(*Tensor, bool) (*Tensor, error)) ([]*Node, error) {
	out := slices.Clone(nodes)
	for i, n := range nodes {
		if !slices.ContainsFunc(n.Attrs, holdsTensors) {
			continue
		}
		c := *n
		var err error
		if c.Attrs, err = mapAttrs(n.Attrs, f); err != nil {
			return nil, err
		}
		out[i] = &c
	}
	return out, nil
}

func holdsTensors(a *Attribute) bool {
	return a.T != nil || a.G != nil || len(a.Tensors) > 0 || len(a.Graphs) > 0
}

func mapAttrs(attrs []*Attribute, f func(*Tensor, bool) (*Tensor, error)) ([]*Attribute, error) {
	out := slices.Clone(attrs)
	for i, a := range attrs {
		if !holdsTensors(a) {
			continue
		}
		c := *a
		var err error
		if a.T != nil {
			if c.T, err = f(a.T, false); err != nil {
				return nil, err
			}
		}
		if c.G, err = mapGraph(a.G, f); err != nil {
			return nil, err
		}
		c.Tensors = slices.Clone(a.Tensors)
		for j, t := range a.Tensors {
			if c.Tensors[j], err = f(t, false); err != nil {
				return nil, err
			}
		}
		c.Graphs = slices.Clone(a.Graphs)
		for j, g := range a.Graphs {
			if c.Graphs[j], err = mapGraph(g, f); err != nil {
				return nil, err
			}
		}
		out[i] = &c
	}
	return out, nil
}

// EachNode calls f for every node, including those of subgraphs.
func EachNode(nodes []*Node, f func(*Node)) {
	for _, n := range nodes {
		f(n)
		for _, a := range n.Attrs {
			for _, g := range a.Subgraphs() {
				EachNode(g.Nodes, f)
			}
		}
	}
}

// Subgraphs returns the graphs in the attribute.
func (a *Attribute) Subgraphs() []*Graph {
	if a.G != nil {
		return append([]*Graph{a.G}, a.Graphs...)
	}
	return a.Graphs
}

// Captured replaces by f(name) every name that subgraphs of n read from enclosing graphs, as node input
// or graph output.
func (n *Node) Captured(f func(string) string) {
	for _, a := range n.Attrs {
		for _, g := range a.Subgraphs() {
			g.captured(f)
		}
	}
}

func (g *Graph) captured(f func(string) string) {
	bound := map[string]bool{"": true}
	for _, v := range g.Inputs {
		bound[v.Name] = true
	}
	for _, t := range g.Initializers {
		bound[t.Name] = true
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			bound[o] = true
		}
	}
	outer := func(v string) string {
		if bound[v] {
			return v
		}
		return f(v)
	}
	for _, n := range g.Nodes {
		for i, v := range n.Inputs {
			n.Inputs[i] = outer(v)
		}
		n.Captured(outer)
	}
	for _, v := range g.Outputs {
		v.Name = outer(v.Name)
	}
}
