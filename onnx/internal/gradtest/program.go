package gradtest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/internal/reference"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Feeds are the inputs of a run, by name.
type Feeds = reference.Feeds

// Program is a model that is ready to run, with all its outputs.
type Program struct {
	*reference.Program
	wide bool // floats are fed in double whatever they are
}

// Open opens m on one thread, as it is written: to fuse its operators takes longer than all
// runs, and fused ones compute less exactly in double.
func Open(m *onnx.Model) (*Program, error) {
	var outputs []string
	for _, v := range m.Graph.Outputs {
		outputs = append(outputs, v.Name)
	}
	p, err := reference.Open(context.Background(), m, outputs, ort.Options{Threads: 1, Unoptimized: true})
	return &Program{Program: p}, err
}

// Run returns the outputs by name.
func (p *Program) Run(f Feeds) (Feeds, error) {
	if p.wide {
		f = reference.Wide(f)
	}
	return p.Program.Run(context.Background(), f)
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

// Tensor returns a tensor of the given type.
func Tensor(t onnx.DataType, shape []int64, v []float64) *ort.Tensor {
	return reference.Tensor(t, shape, v)
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
