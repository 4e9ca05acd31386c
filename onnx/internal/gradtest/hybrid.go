package gradtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// The runtime computes some operators in float32 only. So that differences can be
// taken in float64 all the same, a model of type double that has such operators is
// run in parts: those operators in Go, by naive loops written from the standard,
// what lies between them in the runtime. What the runtime itself makes of the
// operators is then checked apart, in float32, by sameInFloat.

// Array is a tensor of numbers for a Reference.
type Array struct {
	Shape []int64
	Data  []float64
}

// NewArray returns zeros.
func NewArray(shape ...int64) *Array {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return &Array{Shape: slices.Clone(shape), Data: make([]float64, n)}
}

// Reference computes the first output of a node. Inputs left out are nil.
type Reference func(n *onnx.Node, in []*Array) (*Array, error)

// references are filled by the init functions of the files reference_*.go.
var references = map[string]Reference{}

// doubleSince says from which operator set on the runtime computes an operator that
// has a reference in double after all.
var doubleSince = map[string]int64{}

// step is a part of a hybrid program: a node in Go, or a session.
type step struct {
	node *onnx.Node
	run  *Program
}

// hybridOf returns the steps of m, or nil where the runtime can run all of it.
func hybridOf(m *onnx.Model) ([]step, error) {
	vals, err := shape.Infer(m)
	if err != nil {
		return nil, err
	}
	byGo := func(n *onnx.Node) bool {
		x := vals[n.In(0)]
		if since := doubleSince[n.Op]; since > 0 && m.Opset() >= since {
			return false
		}
		return n.Domain == "" && references[n.Op] != nil && x != nil && x.Type == onnx.Double
	}
	if !slices.ContainsFunc(m.Graph.Nodes, byGo) {
		return nil, nil
	}
	var steps []step
	var pending []*onnx.Node
	flush := func(rest []*onnx.Node) error {
		if len(pending) == 0 {
			return nil
		}
		p, err := openPart(m, vals, pending, rest)
		pending = nil
		steps = append(steps, step{run: p})
		return err
	}
	for i, n := range m.Graph.Nodes {
		if !byGo(n) {
			pending = append(pending, n)
			continue
		}
		if err := flush(m.Graph.Nodes[i:]); err != nil {
			return nil, err
		}
		steps = append(steps, step{node: n})
	}
	return steps, flush(nil)
}

// openPart opens the nodes of m that lie between two others as a model of its own,
// with the values that the rest reads as outputs.
func openPart(m *onnx.Model, vals shape.Values, nodes, rest []*onnx.Node) (*Program, error) {
	part := &onnx.Model{IRVersion: m.IRVersion, Opsets: m.Opsets, Graph: &onnx.Graph{Name: "part", Nodes: nodes}}
	wanted, made, fed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range rest {
		for _, v := range n.Inputs {
			wanted[v] = true
		}
	}
	for _, o := range m.Graph.Outputs {
		wanted[o.Name] = true
	}
	info := func(v string) (*onnx.ValueInfo, error) {
		i := vals[v]
		if i == nil || i.Type == onnx.Undefined {
			return nil, fmt.Errorf("gradtest: the type of %q is unknown", v)
		}
		t := onnx.Type{Elem: i.Type, HasShape: i.Known}
		for range i.Shape {
			t.Shape = append(t.Shape, onnx.ShapeDim{Value: -1})
		}
		return &onnx.ValueInfo{Name: v, Type: t}, nil
	}
	for _, n := range nodes {
		for _, v := range n.Inputs {
			if v == "" || made[v] || fed[v] {
				continue
			}
			fed[v] = true
			if t := m.Graph.Initializer(v); t != nil {
				part.Graph.Initializers = append(part.Graph.Initializers, t)
				continue
			}
			i, err := info(v)
			if err != nil {
				return nil, err
			}
			part.Graph.Inputs = append(part.Graph.Inputs, i)
		}
		for _, v := range n.Outputs {
			made[v] = true
			if wanted[v] {
				i, err := info(v)
				if err != nil {
					return nil, err
				}
				part.Graph.Outputs = append(part.Graph.Outputs, i)
			}
		}
	}
	if len(part.Graph.Outputs) == 0 {
		return &Program{}, nil
	}
	// The binding wants an input.
	if len(part.Graph.Inputs) == 0 {
		part.Graph.Inputs = append(part.Graph.Inputs, &onnx.ValueInfo{Name: dummyInput, Type: onnx.Type{Elem: onnx.Double, HasShape: true}})
	}
	return open(part)
}

// dummyInput is an input of parts that read constants only.
const dummyInput = "gradtest/none"

// runSteps runs a hybrid program.
func (p *Program) runSteps(f Feeds) (Feeds, error) {
	all := Feeds{dummyInput: Tensor(onnx.Double, nil, []float64{0})}
	for k, t := range f {
		all[k] = t
	}
	for _, s := range p.steps {
		if s.node == nil {
			if s.run.s == nil {
				continue
			}
			out, err := s.run.Run(all)
			if err != nil {
				return nil, err
			}
			for k, t := range out {
				all[k] = t
			}
			continue
		}
		in := make([]*Array, len(s.node.Inputs))
		for i, v := range s.node.Inputs {
			t := all[v]
			if c := p.constants[v]; t == nil && c != nil {
				t = c
			}
			if v != "" && t == nil {
				return nil, fmt.Errorf("gradtest: %s reads %q, which is not there", s.node.Label(), v)
			}
			if v != "" {
				in[i] = &Array{t.Shape, t.Float64s()}
			}
		}
		y, err := references[s.node.Op](s.node, in)
		if err != nil {
			return nil, fmt.Errorf("gradtest: %s: %w", s.node.Label(), err)
		}
		all[s.node.Outputs[0]] = Tensor(onnx.Double, y.Shape, y.Data)
	}
	out := Feeds{}
	for _, name := range p.outputs {
		out[name] = all[name]
	}
	return out, nil
}

// constantsOf returns the initialisers of m that nodes in Go may read.
func constantsOf(m *onnx.Model) (Feeds, error) {
	out := Feeds{}
	for _, t := range m.Graph.Initializers {
		var v []float64
		var err error
		if t.Type.IsFloat() {
			v, err = t.Float64s()
		} else {
			var ints []int64
			ints, err = t.Int64s()
			v = (&ort.Tensor{Data: ints}).Float64s()
		}
		if err != nil {
			return nil, err
		}
		out[t.Name] = &ort.Tensor{Shape: t.Dims, Data: v}
	}
	return out, nil
}

// floatTolerance bounds the difference of a float32 run from the same in float64,
// relative to the largest number of the output.
const floatTolerance = 2e-5

// sameInFloat runs a hybrid model whole, in float32 in the runtime, and compares
// what it gives with want.
func sameInFloat(m *onnx.Model, f, want Feeds) error {
	feeds := Feeds{}
	for k, t := range f {
		if d, ok := t.Data.([]float64); ok {
			t = Tensor(onnx.Float, t.Shape, d)
		}
		feeds[k] = t
	}
	got, err := Run(narrow(m), feeds)
	if err != nil {
		return fmt.Errorf("in float32: %w", err)
	}
	for name, w := range want {
		y := got[name]
		if !slices.Equal(w.Shape, y.Shape) {
			return fmt.Errorf("in float32 the runtime gives %s of shape %v, the reference %v", name, y.Shape, w.Shape)
		}
		a, b := w.Float64s(), y.Float64s()
		scale := 1.0
		for _, v := range a {
			scale = max(scale, math.Abs(v))
		}
		for i := range a {
			if !(math.Abs(a[i]-b[i]) <= floatTolerance*scale) {
				return fmt.Errorf("in float32 the runtime gives %s[%d] of %v as %.9g, the reference %.9g", name, i, w.Shape, b[i], a[i])
			}
		}
	}
	return nil
}

// narrow returns m with float32 in place of float64.
func narrow(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	tensor := func(t *onnx.Tensor) *onnx.Tensor {
		if t == nil || t.Type != onnx.Double {
			return t
		}
		v, err := t.Float64s()
		if err != nil {
			panic(err) // the tensor was made in memory
		}
		out := make([]float32, len(v))
		for i, x := range v {
			out[i] = float32(x)
		}
		return onnx.NewFloat(t.Name, t.Dims, out)
	}
	for i, t := range m.Graph.Initializers {
		m.Graph.Initializers[i] = tensor(t)
	}
	for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs, m.Graph.ValueInfos} {
		for i, v := range list {
			if v.Type.Elem == onnx.Double {
				c := *v
				c.Type.Elem = onnx.Float
				list[i] = &c
			}
		}
	}
	for i, n := range m.Graph.Nodes {
		c := *n
		c.Attrs = slices.Clone(n.Attrs)
		for k, a := range c.Attrs {
			b := *a
			if a.T != nil {
				b.T = tensor(a.T)
			}
			if n.Op == "Cast" && a.Name == "to" && onnx.DataType(a.I) == onnx.Double {
				b.I = int64(onnx.Float)
			}
			c.Attrs[k] = &b
		}
		m.Graph.Nodes[i] = &c
	}
	return m
}
