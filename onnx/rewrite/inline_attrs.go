package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"slices"
)

// callAttrs replaces references to attributes of a call by their values.
type callAttrs struct {
	call   *onnx.Node
	f      *onnx.Function
	names  *nameSet
	prefix string
}

// node returns x, or a copy with all references replaced.
func (c *callAttrs) node(x *onnx.Node) *onnx.Node {
	if !slices.ContainsFunc(x.Attrs, refers) {
		return x
	}
	k := *x
	k.Attrs = nil
	for _, a := range x.Attrs {
		if b := c.attribute(a); b != nil {
			k.Attrs = append(k.Attrs, b)
		}
	}
	return &k
}

// refers reports whether a, or a node in its subgraphs, references an attribute of the call.
func refers(a *onnx.Attribute) bool {
	if a.RefName != "" {
		return true
	}
	return slices.ContainsFunc(a.Subgraphs(), func(g *onnx.Graph) bool {
		return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return slices.ContainsFunc(n.Attrs, refers) })
	})
}

// attribute returns the value of a in this call, or nil if it is omitted.
func (c *callAttrs) attribute(a *onnx.Attribute) *onnx.Attribute {
	switch {
	case a.RefName != "":
		given := c.call.Attr(a.RefName)
		if given == nil {
			given = (&onnx.Node{Attrs: c.f.AttributeProtos}).Attr(a.RefName)
		}
		if given == nil {
			return nil
		}
		// A graph attribute of the call reads values of the caller, not of the function.
		k := *(&renames{}).attribute(given, c.prefix, c.names)
		k.Name = a.Name
		return &k
	case !refers(a):
		return a
	}
	k := *a
	graph := func(g *onnx.Graph) *onnx.Graph {
		if g == nil {
			return nil
		}
		h := *g
		h.Nodes = make([]*onnx.Node, len(g.Nodes))
		for i, x := range g.Nodes {
			h.Nodes[i] = c.node(x)
		}
		return &h
	}
	k.G, k.Graphs = graph(a.G), slices.Clone(a.Graphs)
	for i, g := range a.Graphs {
		k.Graphs[i] = graph(g)
	}
	return &k
}
