package gradtest

import (
	"context"
	"fmt"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Feeds are the inputs of a run, by name.
type Feeds map[string]*ort.Tensor

// Program is a model opened in the runtime, with all its outputs.
type Program struct {
	s       *ort.Session
	inputs  []string
	outputs []string
	// steps are the parts of a model that the runtime cannot run whole in double.
	steps     []step
	constants Feeds
	// wide says that floats are fed in double whatever they are.
	wide bool
}

// Open opens m on one thread, as it is written: to fuse its operators takes longer than all
// runs, and fused ones compute less exactly in double. In a model of type double, operators
// for which the runtime has float32 only are computed in Go.
func Open(m *onnx.Model) (*Program, error) {
	steps, err := hybridOf(m)
	if steps == nil || err != nil {
		if err != nil {
			return nil, err
		}
		return open(m)
	}
	p := &Program{steps: steps}
	for _, v := range m.Graph.Outputs {
		p.outputs = append(p.outputs, v.Name)
	}
	p.constants, err = constantsOf(m)
	return p, err
}

func open(m *onnx.Model) (*Program, error) {
	raw, err := onnx.Encode(m)
	if err != nil {
		return nil, err
	}
	p := &Program{}
	for _, v := range m.Graph.Inputs {
		if m.Graph.Initializer(v.Name) == nil {
			p.inputs = append(p.inputs, v.Name)
		}
	}
	for _, v := range m.Graph.Outputs {
		p.outputs = append(p.outputs, v.Name)
	}
	p.s, err = ort.Open(context.Background(), raw, p.inputs, p.outputs, ort.Options{Threads: 1, Unoptimized: true})
	return p, err
}

// Close frees the session.
func (p *Program) Close() {
	if p.s != nil {
		_ = p.s.Close()
	}
	for _, s := range p.steps {
		if s.run != nil {
			s.run.Close()
		}
	}
}

// Hybrid reports whether some operators are computed in Go.
func (p *Program) Hybrid() bool { return p.steps != nil }

// Run returns the outputs by name.
func (p *Program) Run(f Feeds) (Feeds, error) {
	if p.wide {
		f = widened(f)
	}
	if p.steps != nil {
		return p.runSteps(f)
	}
	in := make([]*ort.Tensor, len(p.inputs))
	for i, name := range p.inputs {
		if in[i] = f[name]; in[i] == nil {
			return nil, fmt.Errorf("gradtest: input %q was not fed", name)
		}
	}
	out := make([]*ort.Tensor, len(p.outputs))
	if err := p.s.Run(context.Background(), in, out); err != nil {
		return nil, err
	}
	res := Feeds{}
	for i, name := range p.outputs {
		res[name] = out[i]
	}
	return res, nil
}

func widened(f Feeds) Feeds {
	out := Feeds{}
	for k, t := range f {
		if _, ok := t.Data.([]float32); ok {
			t = &ort.Tensor{Shape: t.Shape, Data: t.Float64s()}
		}
		out[k] = t
	}
	return out
}

// Run opens m, runs it once and closes it.
func Run(m *onnx.Model, f Feeds) (Feeds, error) {
	p, err := Open(m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(f)
}

// Tensor returns a tensor of floats of the given type.
func Tensor(t onnx.DataType, shape []int64, v []float64) *ort.Tensor {
	if t == onnx.Double {
		return &ort.Tensor{Shape: shape, Data: v}
	}
	d := make([]float32, len(v))
	for i, x := range v {
		d[i] = float32(x)
	}
	return &ort.Tensor{Shape: shape, Data: d}
}
