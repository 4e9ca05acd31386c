package onnx

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a model.
type Problem struct {
	// Where names the node, graph, function or tensor.
	Where string
	// Value is the name of the value concerned, or empty.
	Value  string
	Reason string
}

// String returns one line.
func (p Problem) String() string { return p.Where + ": " + p.Reason }

const (
	maxProblems = 100 // listed in a FormatError
	maxShown    = 8   // of them in its message
	MaxCalls    = 256 // functions inside each other
)

// Check reports what is wrong with the structure of a model, as a [*FormatError]
// that lists everything found:
//
//   - a missing graph, a domain without an operator set version (except com.microsoft)
//   - a value that is read but never written, or before it is written (nodes out
//     of order), or that depends on itself (the cycle is named)
//   - a value that is written twice, also by a subgraph that hides it
//   - an output that nothing writes, an input or output listed twice
//   - tensors whose data does not have the size that type and dimensions say
//   - attributes given twice, without a value or of a type that the operator does not have
//   - functions defined twice or calling themselves
//
// It knows nothing of operators: [shape.Infer] finds wrong types and shapes. External
// data is not opened: [Model.Data] does that.
func Check(m *Model) error {
	c := checker{}
	if m.Graph == nil {
		c.report("model", "", "it has no graph")
		return c.err(m.Path)
	}
	c.opsets = m.Opsets
	c.graph(m.Graph, nil, 1)
	c.functions(m)
	if len(c.problems) == 0 {
		return nil
	}
	return c.err(m.Path)
}

// err returns the problems found as one error, whose message has the first of them.
func (c *checker) err(path string) error {
	var list []string
	for _, p := range c.problems[:min(len(c.problems), maxShown)] {
		list = append(list, p.String())
	}
	reason := strings.Join(list, "; ")
	if more := len(c.problems) - len(list) + c.more; more > 0 {
		reason += fmt.Sprintf("; and %d more problems", more)
	}
	return &FormatError{Path: path, Offset: -1, Reason: reason, Problems: c.problems, More: c.more}
}

type checker struct {
	problems   []Problem
	more       int // problems beyond those listed
	opsets     map[string]int64
	noOpset    map[string]bool // domains reported already
	inFunction bool
}

func (c *checker) report(where, value, format string, args ...any) {
	if len(c.problems) == maxProblems {
		c.more++
		return
	}
	c.problems = append(c.problems, Problem{where, value, fmt.Sprintf(format, args...)})
}

// functions checks the bodies of the model's own operators.
func (c *checker) functions(m *Model) {
	type key struct{ domain, name, overload string }
	byName := map[key]*Function{}
	for _, f := range m.Functions {
		k := key{f.Domain, f.Name, f.Overload}
		if byName[k] != nil {
			c.report(f.Label(), "", "it is defined twice")
			continue
		}
		byName[k] = f
		c.opsets, c.noOpset, c.inFunction = f.Opsets, nil, true
		body := &Graph{Nodes: f.Nodes}
		for _, name := range f.Inputs {
			body.Inputs = append(body.Inputs, &ValueInfo{Name: name})
		}
		for _, name := range f.Outputs {
			body.Outputs = append(body.Outputs, &ValueInfo{Name: name})
		}
		c.graph(body, &scope{function: f}, 1)
	}
	// A call that leads back to its own function would never end.
	state := map[*Function]int{} // 1: being followed, 2: done
	var follow func(*Function, int)
	follow = func(f *Function, depth int) {
		state[f] = 1
		EachNode(f.Nodes, func(n *Node) {
			g := byName[key{n.Domain, n.Op, n.Overload}]
			switch {
			case g == nil:
			case state[g] == 1:
				c.report(f.Label(), "", "its %s calls back to %s", n.Label(), g.Label())
			case state[g] == 0 && depth == MaxCalls:
				c.report(f.Label(), "", "functions call each other over %d deep", MaxCalls)
			case state[g] == 0:
				follow(g, depth+1)
			}
		})
		state[f] = 2
	}
	for _, f := range m.Functions {
		if state[f] == 0 {
			follow(f, 0)
		}
	}
}

func (f *Function) Label() string {
	return fmt.Sprintf("function %s", strings.TrimPrefix(f.Domain+"."+f.Name, "."))
}

// tensor checks that the data of t has the size that type and dimensions say.
func (c *checker) tensor(where string, t *Tensor) {
	where = fmt.Sprintf("%s %q", where, t.Name)
	size, known, err := t.dataSize()
	n, _ := t.Elements()
	switch {
	case err != nil:
		c.report(where, t.Name, "impossible dimensions %v", t.Dims)
	case t.External != nil && t.External.Location == "":
		c.report(where, t.Name, "it is stored outside but no file is named")
	case t.External != nil && known && t.External.Length >= 0 && t.External.Length != size:
		c.report(where, t.Name, "its external data has %d bytes, %v elements of dimensions %v have %d", t.External.Length, t.Type, t.Dims, size)
	case t.External != nil:
	case t.Type == String && int64(len(t.Strings)) != n:
		c.report(where, t.Name, "%d strings for dimensions %v", len(t.Strings), t.Dims)
	case t.Type == String:
	case !known:
		c.report(where, t.Name, "unknown element type number %d", int32(t.Type))
	case int64(len(t.Raw)) != size:
		c.report(where, t.Name, "its data has %d bytes, %v elements of dimensions %v have %d", len(t.Raw), t.Type, t.Dims, size)
	}
}
