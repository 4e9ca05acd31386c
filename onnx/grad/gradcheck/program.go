package gradcheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// feeds are values by name.
type feeds map[string]*ort.Tensor

// program is a model opened in the runtime.
type program struct {
	s               *ort.Session
	inputs, outputs []string
	model           *onnx.Model
}

// open opens m with some of its outputs.
func open(ctx context.Context, m *onnx.Model, outputs []string, o ort.Options) (*program, error) {
	raw, err := onnx.Encode(m)
	if err != nil {
		return nil, err
	}
	p := &program{outputs: outputs, model: m}
	for _, v := range m.Graph.Inputs {
		if m.Graph.Initializer(v.Name) == nil {
			p.inputs = append(p.inputs, v.Name)
		}
	}
	if len(p.inputs) == 0 {
		return nil, unsupported("the model has no input")
	}
	o.Name, o.ExternalDir = "gradcheck", m.Dir
	p.s, err = ort.Open(ctx, raw, p.inputs, outputs, o)
	return p, err
}

func (p *program) close() { _ = p.s.Close() }

// run returns the outputs by name.
func (p *program) run(ctx context.Context, f feeds) (feeds, error) {
	in := make([]*ort.Tensor, len(p.inputs))
	for i, name := range p.inputs {
		if in[i] = f[name]; in[i] == nil {
			return nil, fmt.Errorf("gradcheck: input %q was not fed", name)
		}
	}
	out := make([]*ort.Tensor, len(p.outputs))
	if err := p.s.Run(ctx, in, out); err != nil {
		return nil, err
	}
	res := feeds{}
	for i, name := range p.outputs {
		res[name] = out[i]
	}
	return res, nil
}

// run opens m, runs it once and closes it.
func run(ctx context.Context, m *onnx.Model, outputs []string, f feeds, o ort.Options) (feeds, error) {
	p, err := open(ctx, m, outputs, o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.run(ctx, f)
}

// tensor returns numbers in an element type that the binding carries, or nil.
func tensor(t onnx.DataType, shape []int64, v []float64) *ort.Tensor {
	out := &ort.Tensor{Shape: shape}
	switch t {
	case onnx.Double:
		out.Data = slices.Clone(v)
	case onnx.Float:
		out.Data = convert[float32](v)
	case onnx.Int64:
		out.Data = convert[int64](v)
	case onnx.Int32:
		out.Data = convert[int32](v)
	case onnx.Uint8:
		out.Data = convert[uint8](v)
	case onnx.Int8:
		out.Data = convert[int8](v)
	case onnx.Bool:
		b := make([]bool, len(v))
		for i, x := range v {
			b[i] = x != 0
		}
		out.Data = b
	default:
		return nil
	}
	return out
}

func convert[T float32 | int64 | int32 | uint8 | int8](v []float64) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = T(x)
	}
	return out
}

// deepClone returns a copy of m of which attributes can be changed as well.
func deepClone(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	for _, f := range m.Functions {
		cloneAttrs(f.Nodes)
	}
	cloneAttrs(m.Graph.Nodes)
	return m
}

func cloneAttrs(nodes []*onnx.Node) {
	for _, n := range nodes {
		for i, a := range n.Attrs {
			k := *a
			k.Tensors = slices.Clone(a.Tensors)
			n.Attrs[i] = &k
			if a.G != nil {
				cloneAttrs(a.G.Nodes)
			}
			for _, g := range a.Graphs {
				cloneAttrs(g.Nodes)
			}
		}
	}
}
