package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// FoldIf replaces, in place, every If whose condition is a known constant by the
// branch that it takes, in the main graph and in subgraphs. A condition is known
// where it is an initialiser that no caller can replace, or computed from such and
// from shapes that are numbers. Values of the branch get names of their own; those
// of the node's outputs stay.
func FoldIf(m *onnx.Model) {
	if m.Graph == nil || !hasIf(m.Graph.Nodes) {
		return
	}
	f := &ifFolder{m: m, names: namesOf(m)}
	f.graph(m.Graph, nil)
}

func hasIf(nodes []*onnx.Node) bool {
	found := false
	onnx.EachNode(nodes, func(n *onnx.Node) { found = found || n.Op == "If" && n.Domain == "" })
	return found
}

type ifFolder struct {
	m     *onnx.Model
	names *nameSet
}

func (f *ifFolder) graph(g *onnx.Graph, up *shape.Scope) {
	if !hasIf(g.Nodes) {
		return
	}
	at := shape.EnterScope(f.m, g, up)
	g.Nodes = f.list(g.Nodes, at, g)
}

// list returns what stands for nodes of g. Nodes are in order, so a branch that was
// taken tells the conditions that follow.
func (f *ifFolder) list(nodes []*onnx.Node, at *shape.Scope, g *onnx.Graph) []*onnx.Node {
	var out []*onnx.Node
	for _, n := range nodes {
		if branch := taken(n, at); branch != nil {
			out = append(out, f.list(f.nodes(n, branch, g, at), at, g)...)
			continue
		}
		at.Add(n)
		for _, a := range n.Attrs {
			for _, s := range a.Subgraphs() {
				f.graph(s, at)
			}
		}
		out = append(out, n)
	}
	return out
}

// taken returns the branch of n, or nil where n is no If or its condition unknown.
func taken(n *onnx.Node, at *shape.Scope) *onnx.Graph {
	if n.Op != "If" || n.Domain != "" {
		return nil
	}
	c := at.Info(n.In(0))
	if c == nil || len(c.Ints) != 1 {
		return nil
	}
	v, ok := c.Ints[0].Const()
	if !ok {
		return nil
	}
	name := "then_branch"
	if v == 0 {
		name = "else_branch"
	}
	a := n.Attr(name)
	if a == nil || a.G == nil || len(a.G.Inputs) > 0 || len(a.G.Outputs) < len(n.Outputs) {
		return nil
	}
	return a.G
}

// nodes returns those of a branch of n, with its results under the names of the
// outputs of n; the constants of the branch go to g.
func (f *ifFolder) nodes(n *onnx.Node, branch, g *onnx.Graph, at *shape.Scope) []*onnx.Node {
	r := &renames{to: map[string]string{}}
	written := map[string]bool{}
	for _, x := range branch.Nodes {
		for _, o := range x.Outputs {
			written[o] = true
		}
	}
	var copied []int // outputs that no node of the branch writes, or a second time
	for i, o := range n.Outputs {
		v := branch.Outputs[i].Name
		if _, bound := r.to[v]; o != "" && written[v] && !bound {
			r.to[v] = o
		} else if o != "" {
			copied = append(copied, i)
		}
	}
	r.bind(branch, "", f.names)
	constants := r.tensors(branch.Initializers)
	g.Initializers = append(g.Initializers, constants...)
	for _, t := range constants {
		at.Vals[t.Name], at.Source[t.Name] = shape.TensorInfo(t), t
	}
	var out []*onnx.Node
	for _, x := range branch.Nodes {
		out = append(out, r.node(x, "", f.names))
	}
	for _, i := range copied {
		o := n.Outputs[i]
		out = append(out, &onnx.Node{Op: "Identity", Name: o, Inputs: []string{r.name(branch.Outputs[i].Name)}, Outputs: []string{o}})
	}
	return out
}
