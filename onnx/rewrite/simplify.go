// Package rewrite transforms ONNX models: it simplifies, sorts, upgrades to a newer opset, inlines
// functions, widens element types, binds dimensions, and restricts a computation to some rows.
package rewrite

import (
	"slices"
	"sync"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Simplify rewrites the main graph of m in place into a smaller equivalent one:
//
//   - identities, dropouts at inference and casts to the same type are removed
//   - an If with a known condition is replaced by the branch taken ([FoldIf])
//   - Constant nodes become initialisers
//   - results of shape arithmetic become constants
//   - reshapes get constant shapes (with 0 and -1 for symbolic dimensions)
//   - broadcasts of masks move after the operators that follow
//   - nodes that no output needs are removed
//
// Names of inputs and outputs are kept. Contradictory shapes are an *onnx.FormatError.
func Simplify(m *onnx.Model) error {
	FoldIf(m)
	constantsToInitializers(m.Graph)
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	dropIdentities(m.Graph, vals)
	foldKnown(m.Graph, vals)
	names := sync.OnceValue(func() *nameSet { return namesOf(m) })
	fixReshapes(m.Graph, vals, names)
	Prune(m.Graph)
	return sinkExpands(m, names)
}

// SinkExpands is the step of [Simplify] that moves broadcasts.
func SinkExpands(m *onnx.Model) error {
	return sinkExpands(m, sync.OnceValue(func() *nameSet { return namesOf(m) }))
}

func constantsToInitializers(g *onnx.Graph) {
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *onnx.Node) bool {
		if n.Op != "Constant" || n.Domain != "" || n.Out(0) == "" {
			return false
		}
		t := shape.ConstantTensor(n)
		if t == nil {
			return false
		}
		c := *t
		c.Name = n.Outputs[0]
		g.Initializers = append(g.Initializers, &c)
		return true
	})
}

// substitute renames the inputs of nodes.
func substitute(g *onnx.Graph, by map[string]string) {
	replace := func(v string) string {
		if to, ok := by[v]; ok {
			return to
		}
		return v
	}
	for _, n := range g.Nodes {
		for i, v := range n.Inputs {
			n.Inputs[i] = replace(v)
		}
		n.Captured(replace)
	}
}

func outputNames(g *onnx.Graph) map[string]bool {
	out := make(map[string]bool, len(g.Outputs))
	for _, v := range g.Outputs {
		out[v.Name] = true
	}
	return out
}

// dropIdentities removes nodes that return their first input, unless their output is a graph output.
func dropIdentities(g *onnx.Graph, vals shape.Values) {
	by := map[string]string{}
	isOutput := outputNames(g)
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *onnx.Node) bool {
		if n.Domain != "" || n.In(0) == "" || n.Out(0) == "" || isOutput[n.Out(0)] {
			return false
		}
		same := false
		x, y := vals[n.In(0)], vals[n.Out(0)]
		switch n.Op {
		case "Identity":
			same = true
		case "Dropout":
			mode := vals[n.In(2)]
			same = n.Out(1) == "" && (n.In(2) == "" || mode != nil && len(mode.Ints) == 1 && mode.Ints[0].Is(0))
		case "Cast":
			same = x != nil && x.Type != onnx.Undefined && x.Type == onnx.DataType(n.Int("to", 0))
		case "Expand":
			same = x != nil && y != nil && x.Known && y.Known && shape.SameShape(x.Shape, y.Shape)
		}
		if same {
			// Nodes are in topological order, so earlier substitutions are complete.
			from := n.Inputs[0]
			if first, ok := by[from]; ok {
				from = first
			}
			by[n.Outputs[0]] = from
		}
		return same
	})
	substitute(g, by)
}

// foldKnown replaces values with known elements by initialisers.
func foldKnown(g *onnx.Graph, vals shape.Values) {
	isOutput := outputNames(g)
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *onnx.Node) bool {
		if len(n.Outputs) != 1 || isOutput[n.Outputs[0]] {
			return false
		}
		t := knownTensor(n.Outputs[0], vals[n.Outputs[0]])
		if t != nil {
			g.Initializers = append(g.Initializers, t)
		}
		return t != nil
	})
}

// knownTensor returns the constant described by info, or nil if its elements are unknown.
func knownTensor(name string, info *shape.Info) *onnx.Tensor {
	if info == nil || !info.Known || !info.Constant() {
		return nil
	}
	dims := make([]int64, len(info.Shape))
	for i, d := range info.Shape {
		n, ok := d.Const()
		if !ok {
			return nil
		}
		dims[i] = n
	}
	ints, isInt := shape.ConstInts(info)
	switch info.Type {
	case onnx.Int64:
		if isInt {
			return onnx.NewInt64(name, dims, ints)
		}
	case onnx.Int32:
		if isInt {
			v := make([]int32, len(ints))
			for i, x := range ints {
				v[i] = int32(x)
			}
			return onnx.NewInt32(name, dims, v)
		}
	case onnx.Bool:
		if isInt {
			v := make([]bool, len(ints))
			for i, x := range ints {
				v[i] = x != 0
			}
			return onnx.NewBool(name, dims, v)
		}
	case onnx.Double:
		return onnx.NewDouble(name, dims, info.Floats)
	case onnx.Float:
		v := make([]float32, len(info.Floats))
		for i, x := range info.Floats {
			v[i] = float32(x)
		}
		return onnx.NewFloat(name, dims, v)
	}
	return nil
}

// fixReshapes gives Reshape nodes a constant shape if all but one dimension are constants or equal to
// the input dimension at the same position.
func fixReshapes(g *onnx.Graph, vals shape.Values, names func() *nameSet) {
	constant := make(map[string]bool, len(g.Initializers))
	for _, t := range g.Initializers {
		constant[t.Name] = true
	}
	for _, n := range g.Nodes {
		if n.Op != "Reshape" || n.Domain != "" || n.In(1) == "" || constant[n.Inputs[1]] {
			continue
		}
		x, y := vals[n.Inputs[0]], vals[n.Outputs[0]]
		if x == nil || y == nil || !x.Known || !y.Known {
			continue
		}
		shape, ok := staticShape(y.Shape, x.Shape)
		if !ok || (slices.Contains(shape, 0) && n.Int("allowzero", 0) != 0) {
			if !ok {
				continue
			}
			n.Attrs = slices.DeleteFunc(n.Attrs, func(a *onnx.Attribute) bool { return a.Name == "allowzero" })
		}
		t := onnx.NewInt64(names().fresh(n.Outputs[0]+"/shape"), []int64{int64(len(shape))}, shape)
		g.Initializers = append(g.Initializers, t)
		n.Inputs[1] = t.Name
	}
}

// staticShape returns dims as a constant argument of Reshape for an input of shape have: 0 copies a
// dimension, and one -1 is inferred.
func staticShape(dims, have []shape.Dim) ([]int64, bool) {
	out := make([]int64, len(dims))
	open := false
	for i, d := range dims {
		n, ok := d.Const()
		switch {
		case ok:
			out[i] = n
		case i < len(have) && have[i].Equal(d):
			out[i] = 0
		case !open:
			open = true
			out[i] = -1
		default:
			return nil, false
		}
	}
	return out, true
}

// Prune removes the nodes and initialisers that no graph output depends on. It also removes an input
// whose default is such an initialiser, since callers would otherwise have to feed it.
func Prune(g *onnx.Graph) {
	used := make(map[string]bool, len(g.Nodes)+len(g.Initializers))
	for _, o := range g.Outputs {
		used[o.Name] = true
	}
	keep := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !slices.ContainsFunc(n.Outputs, func(o string) bool { return used[o] }) {
			continue
		}
		keep[i] = true
		for _, v := range n.Inputs {
			used[v] = true
		}
		n.Captured(func(v string) string { used[v] = true; return v })
	}
	kept := g.Nodes[:0]
	for i, n := range g.Nodes {
		if keep[i] {
			kept = append(kept, n)
		}
	}
	clear(g.Nodes[len(kept):])
	g.Nodes = kept
	gone := map[string]bool{}
	g.Initializers = slices.DeleteFunc(g.Initializers, func(t *onnx.Tensor) bool {
		if !used[t.Name] {
			gone[t.Name] = true
		}
		return !used[t.Name]
	})
	g.Inputs = slices.DeleteFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return gone[v.Name] })
	g.ValueInfos = slices.DeleteFunc(g.ValueInfos, func(v *onnx.ValueInfo) bool { return !used[v.Name] })
}

// elementwise lists the operators that an Expand can move across.
var elementwise = map[string]bool{"Add": true, "Sub": true, "Mul": true, "Div": true, "Where": true, "Cast": true,
	"Neg": true, "Not": true, "And": true, "Or": true, "Equal": true, "Less": true, "Greater": true, "IsNaN": true}

// sinkExpands moves Expand after the elementwise operators that read it, and drops it if the other
// operand broadcasts anyway. Exporters expand attention masks to [batch, 1, sequence, sequence], which
// wastes memory and hides that rows are independent.
func sinkExpands(m *onnx.Model, names func() *nameSet) error {
	if !slices.ContainsFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return n.Op == "Expand" }) {
		return nil
	}
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	source := map[string]*onnx.Node{} // output of an Expand -> the Expand node
	g := m.Graph
	isOutput := outputNames(g)
	var out []*onnx.Node
	for _, n := range g.Nodes {
		if n.Op == "Expand" && n.Domain == "" && !isOutput[n.Outputs[0]] {
			source[n.Outputs[0]] = n
			out = append(out, n)
			continue
		}
		y := vals[n.Out(0)]
		if n.Domain != "" || !elementwise[n.Op] || y == nil || !y.Known {
			out = append(out, n)
			continue
		}
		dims, from, ok := unexpanded(n, vals, source)
		if !ok {
			out = append(out, n)
			continue
		}
		full := n.Outputs[0]
		if !shape.SameShape(dims, y.Shape) {
			if isOutput[full] || from == nil {
				out = append(out, n)
				continue
			}
			small := names().fresh(full + "/unexpanded")
			e := &onnx.Node{Op: "Expand", Name: full + "/expand", Inputs: []string{small, from.Inputs[1]}, Outputs: []string{full}}
			n.Outputs[0] = small
			vals[small] = &shape.Info{Type: y.Type, Known: true, Shape: dims}
			source[full] = e
			n.Inputs = sources(n.Inputs, source)
			out = append(out, n, e)
			continue
		}
		n.Inputs = sources(n.Inputs, source)
		out = append(out, n)
	}
	g.Nodes = out
	Prune(g)
	return nil
}

// unexpanded returns the shape of n when the inputs of its Expands are read directly, and an Expand
// whose target is the output shape, if any.
func unexpanded(n *onnx.Node, vals shape.Values, source map[string]*onnx.Node) (dims []shape.Dim, from *onnx.Node, ok bool) {
	for _, v := range n.Inputs {
		e := source[v]
		if e != nil {
			ok = true
			if shape.SameShape(vals[v].Shape, vals[n.Outputs[0]].Shape) {
				from = e
			}
			v = e.Inputs[0]
		}
		x := vals[v]
		if x == nil || !x.Known {
			return nil, nil, false
		}
		var err error
		if dims, err = shape.Broadcast(dims, x.Shape); err != nil {
			return nil, nil, false
		}
	}
	return dims, from, ok
}

func sources(in []string, source map[string]*onnx.Node) []string {
	out := slices.Clone(in)
	for i, v := range out {
		if e := source[v]; e != nil {
			out[i] = e.Inputs[0]
		}
	}
	return out
}
