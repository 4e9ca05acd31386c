package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// oldestUpgraded is the oldest operator set that Upgrade reads.
const oldestUpgraded = 7

// Upgrade rewrites m in place into the form of the operator set target, with the
// same results: attributes that became inputs, operators that were renamed or
// removed, defaults and meanings that changed, in the main graph, in subgraphs
// and in the bodies of functions. A model at target or above is left alone.
//
// It reads operator sets from 7 and writes those up to 18. A model below, a target
// above, and a node without an equal in the newer set are an *UnsupportedError; m
// is then as it was. New constants become initialisers of the main graph, or
// Constant nodes of a function. Where the file's version rises from below 4,
// inputs that only state the type of an initialiser, as those files had to, go
// away: no runtime let a caller replace them.
func Upgrade(m *Model, target int64) error {
	if m.Graph == nil || m.Opset() >= target && !slices.ContainsFunc(m.Functions, func(f *Function) bool { return f.below(target) }) {
		return nil
	}
	if target > newestUpgrade {
		return &UnsupportedError{Path: m.Path, Offset: -1, Reason: fmt.Sprintf("a model is upgraded to operator set %d at most, not to %d", newestUpgrade, target)}
	}
	c := m.Clone()
	u := newUpgrader(c, target)
	if from := c.Opset(); from < target {
		if err := u.readable(from, c.Graph.Nodes, c.Opsets); err != nil {
			return err
		}
		u.mainGraph(c.Graph, from)
	}
	for _, f := range c.Functions {
		if f.below(target) {
			if err := u.readable(f.Opsets[""], f.Nodes, f.Opsets); err != nil {
				return err
			}
			u.function(f)
		}
	}
	if u.err != nil {
		return u.err
	}
	if c.Opset() < target {
		if c.Opsets == nil {
			c.Opsets = map[string]int64{}
		}
		c.Opsets[""] = target
		c.raiseIR(target)
	}
	*m.Graph = *c.Graph
	m.Functions, m.Opsets, m.IRVersion = c.Functions, c.Opsets, c.IRVersion
	return nil
}

// below reports whether the standard nodes of f are of a set older than target.
func (f *Function) below(target int64) bool {
	v, ok := f.Opsets[""]
	return ok && v < target
}

// upgrader brings nodes to the form of an operator set.
type upgrader struct {
	target int64
	path   string
	err    error
	model  *Model // the operator sets and the file version that are read
	names  *nameSet
	read   map[string]bool // by nodes, or as outputs
	// main receives constants, or lines, the beginning of the function at hand.
	main   *Graph
	lines  *[]*Node
	consts map[string]string  // constants by contents
	made   map[string]*Tensor // and by name
	vals   *scopeValues
}

func newUpgrader(m *Model, target int64) *upgrader {
	u := &upgrader{target: target, path: m.Path, model: m, names: namesOf(m), read: map[string]bool{}, main: m.Graph, consts: map[string]string{}, made: map[string]*Tensor{}}
	note := func(name string, read bool) { u.read[name] = u.read[name] || read }
	m.Graph.eachName(note)
	for _, f := range m.Functions {
		f.body().eachName(note)
	}
	return u
}

// body returns the function as a graph whose values have no types.
func (f *Function) body() *Graph {
	g := &Graph{Name: f.Name, Nodes: f.Nodes, ValueInfos: f.ValueInfos}
	for _, name := range f.Inputs {
		g.Inputs = append(g.Inputs, &ValueInfo{Name: name})
	}
	for _, name := range f.Outputs {
		g.Outputs = append(g.Outputs, &ValueInfo{Name: name})
	}
	return g
}

// body upgrades nodes whose values nothing is known of.
func (u *upgrader) body(nodes []*Node, from int64) []*Node {
	g := &Graph{Nodes: nodes}
	g.eachName(func(name string, read bool) { u.read[name] = u.read[name] || read })
	u.graph(g, from)
	return g.Nodes
}

// readable refuses what has no known form.
func (u *upgrader) readable(from int64, nodes []*Node, opsets map[string]int64) error {
	standard := false
	eachNode(nodes, func(n *Node) { standard = standard || n.Domain == "" })
	if !standard || from >= oldestUpgraded {
		return nil
	}
	reason := fmt.Sprintf("operator set %d is older than %d, the oldest that is read", from, oldestUpgraded)
	if _, ok := opsets[""]; !ok {
		reason = "it states no version of the standard operator set"
	}
	return &UnsupportedError{Path: u.path, Offset: -1, Reason: reason}
}

// fail records that n has no equal in the newer set.
func (u *upgrader) fail(n *Node, format string, args ...any) {
	if u.err == nil {
		u.err = &UnsupportedError{Path: u.path, Offset: -1, Reason: n.Label() + ": " + fmt.Sprintf(format, args...)}
	}
}

func (u *upgrader) mainGraph(g *Graph, from int64) {
	u.main, u.lines = g, nil
	u.graph(g, from)
}

// function upgrades the body of f, whose constants are nodes.
func (u *upgrader) function(f *Function) {
	var lines []*Node
	u.lines, u.consts, u.model = &lines, map[string]string{}, &Model{Opsets: f.Opsets, IRVersion: u.model.IRVersion}
	g := f.body()
	u.graph(g, f.Opsets[""])
	f.Nodes = append(lines, g.Nodes...)
	f.Opsets[""] = u.target
}

// graph upgrades the nodes of g and what they hold.
func (u *upgrader) graph(g *Graph, from int64) {
	u.vals = enterScope(u.model, g, u.vals)
	defer func() { u.vals = u.vals.up }()
	var out []*Node
	for _, n := range g.Nodes {
		u.vals.add(n)
		for _, a := range n.Attrs {
			for _, s := range a.subgraphs() {
				u.graph(s, from)
			}
		}
		if u.err != nil {
			return
		}
		out = append(out, u.node(n, from)...)
	}
	g.Nodes = out
}

// node brings one node from the form of set v to that of the target.
func (u *upgrader) node(n *Node, v int64) []*Node {
	if n.Domain != "" {
		return []*Node{n}
	}
	for v++; v <= u.target && u.err == nil; v++ {
		rule := upgradeRules[v][n.Op]
		if rule == nil {
			continue
		}
		var out []*Node
		for _, part := range rule(u, n) {
			out = append(out, u.node(part, v)...)
		}
		return out
	}
	return []*Node{n}
}

// fresh returns an unused name for a value that n needs.
func (u *upgrader) fresh(n *Node, what string) string {
	base := n.Op
	if i := slices.IndexFunc(n.Outputs, func(o string) bool { return o != "" }); i >= 0 {
		base = n.Outputs[i]
	}
	return u.names.fresh(base + "/" + what)
}

// tensor names a constant that n reads, one for equal contents.
func (u *upgrader) tensor(n *Node, what string, t *Tensor) string {
	key := tensorKey(t)
	if name, ok := u.consts[key]; ok {
		return name
	}
	name := u.fresh(n, what)
	u.consts[key], u.made[name] = name, t
	if u.lines != nil {
		*u.lines = append(*u.lines, &Node{Op: "Constant", Name: name, Outputs: []string{name}, Attrs: []*Attribute{TensorAttr("value", t)}})
		return name
	}
	t.Name = name
	u.main.Initializers = append(u.main.Initializers, t)
	return name
}

func (u *upgrader) ints(n *Node, what string, v ...int64) string {
	return u.tensor(n, what, NewInt64("", []int64{int64(len(v))}, v))
}

// constant returns the tensor that a name stands for, or nil.
func (u *upgrader) constant(name string) *Tensor {
	if t := u.made[name]; t != nil {
		return t
	}
	return u.vals.constant(name)
}

// attr removes an attribute of n and returns it, or nil where there is none.
func (u *upgrader) attr(n *Node, name string) *Attribute {
	i := slices.IndexFunc(n.Attrs, func(a *Attribute) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	a := n.Attrs[i]
	if a.RefName != "" {
		u.fail(n, "its %s is given by the caller of the function; inline the function first", name)
	}
	n.Attrs = slices.Delete(n.Attrs, i, i+1)
	return a
}

// withAttrs returns a copy of list that has more, in the place of those of the same names.
func withAttrs(list []*Attribute, more ...*Attribute) []*Attribute {
	out := slices.DeleteFunc(slices.Clone(list), func(a *Attribute) bool {
		return slices.ContainsFunc(more, func(b *Attribute) bool { return a.Name == b.Name })
	})
	return append(out, more...)
}

// setInput makes v the input i of n, the ones before it left out if need be.
func (n *Node) setInput(i int, v string) {
	for len(n.Inputs) <= i {
		n.Inputs = append(n.Inputs, "")
	}
	n.Inputs[i] = v
	for k := len(n.Inputs); k > 0 && n.Inputs[k-1] == ""; k-- {
		n.Inputs = n.Inputs[:k-1]
	}
}

// helper returns a node that computes a value for n; its last output is to be
// read by others.
func (u *upgrader) helper(n *Node, op, what string, in []string, attrs ...*Attribute) (*Node, string) {
	out := u.fresh(n, what)
	return &Node{Op: op, Name: out, Inputs: in, Outputs: []string{out}, Attrs: attrs}, out
}

// upgradeRules rewrite a node into nodes of the operator set under which they
// stand; what a rule returns goes through the rules of later sets.
var upgradeRules = map[int64]map[string]func(u *upgrader, n *Node) []*Node{}

func upgradeAt(opset int64, rule func(*upgrader, *Node) []*Node, ops string) {
	if upgradeRules[opset] == nil {
		upgradeRules[opset] = map[string]func(*upgrader, *Node) []*Node{}
	}
	for _, op := range strings.Fields(ops) {
		upgradeRules[opset][op] = rule
	}
}
