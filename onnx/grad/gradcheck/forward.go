package gradcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// output is the name of the flattened output that differences are taken of.
const output = "gradcheck/y"

// variable is a value that differences are taken by: an input of a forward program,
// where it stands, and the scale of a step.
type variable struct {
	name  string
	shape []int64
	at    []float64
}

// forward is a program whose output is differentiated numerically.
type forward struct {
	*program
	feed     feeds
	variable map[string]variable // by what the gradient is by
	elem     onnx.DataType
	weights  []float64 // of the elements of the output
	rounded  []rounding
}

// forward opens the part of after that computes the output, with everything that the
// gradient is by as an input: initialisers, and the one-hot encoding of codes.
func (c *checker) forward(after *onnx.Model, native feeds, codes map[string]bool) (*forward, error) {
	m := deepClone(after)
	f := &forward{feed: feeds{}, variable: map[string]variable{}, elem: onnx.Float}
	for k, t := range c.feed {
		f.feed[k] = t
	}
	m.Graph.Inputs = slices.DeleteFunc(m.Graph.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == c.res.Seed && v.Name != "" })
	m.Graph.Outputs = slices.DeleteFunc(m.Graph.Outputs, func(v *onnx.ValueInfo) bool { return v.Name != c.of })
	rewrite.Prune(m.Graph)
	var err error
	if f.rounded, err = c.smooth(m); err != nil {
		return nil, err
	}
	for i, w := range c.wrt {
		t := m.Graph.Initializer(w)
		switch {
		case codes[w]:
			shape := native[c.res.Grads[i]].Shape
			v, err := c.relax(m, w, shape[len(shape)-1])
			if err != nil {
				return nil, err
			}
			f.variable[w] = v
			f.feed[v.name] = tensor(onnx.Float, v.shape, v.at)
		case t != nil:
			t, err := m.Resolve(t)
			if err != nil {
				return nil, err
			}
			at, err := t.Float64s()
			if err != nil {
				return nil, err
			}
			f.variable[w] = variable{w, t.Dims, at}
			f.feed[w] = tensor(t.Type, t.Dims, at)
			asInput(m.Graph, t)
		default:
			x := c.feed[w]
			f.variable[w] = variable{w, x.Shape, x.Float64s()}
		}
	}
	flatten(m, c.of)
	if v := m.Graph.Outputs[0]; v.Type.Elem == onnx.Double {
		f.elem = onnx.Double
	}
	p, err := open(c.ctx, m, []string{output}, c.o.Runtime)
	if err != nil {
		return nil, err
	}
	f.program = p
	y, err := f.run(c.ctx, f.feed)
	if err != nil {
		f.close()
		return nil, err
	}
	f.weights = make([]float64, len(y[output].Float64s()))
	for i := range f.weights {
		f.weights[i] = 1
	}
	if c.res.Seed != "" {
		copy(f.weights, c.feed[c.res.Seed].Float64s())
	}
	return f, nil
}

// asInput turns an initialiser into an input.
func asInput(g *onnx.Graph, t *onnx.Tensor) {
	g.Initializers = slices.DeleteFunc(g.Initializers, func(u *onnx.Tensor) bool { return u.Name == t.Name })
	if g.Input(t.Name) != nil {
		return
	}
	v := &onnx.ValueInfo{Name: t.Name, Type: onnx.Type{Elem: t.Type, HasShape: true}}
	for _, d := range t.Dims {
		v.Type.Shape = append(v.Type.Shape, onnx.ShapeDim{Value: d})
	}
	g.Inputs = append(g.Inputs, v)
}

// flatten makes a vector of the output of m, so that nothing depends on its rank.
func flatten(m *onnx.Model, of string) {
	g := m.Graph
	elem := g.Outputs[0].Type.Elem
	shape := onnx.NewInt64(output+"/shape", []int64{1}, []int64{-1})
	g.Initializers = append(g.Initializers, shape)
	g.Nodes = append(g.Nodes, &onnx.Node{Op: "Reshape", Name: output, Inputs: []string{of, shape.Name}, Outputs: []string{output}})
	g.Outputs = []*onnx.ValueInfo{{Name: output, Type: onnx.Type{Elem: elem, HasShape: true, Shape: []onnx.ShapeDim{{Value: -1}}}}}
}

// wide is the model in float64. Grads is nil where only the way forward runs so.
type wide struct {
	forward *forward
	grads   feeds
}

// maxWide bounds the weights of a model that is widened: they travel in one message.
const maxWide = 1 << 30

// widened opens forward and backward in float64 and runs them, or returns nil where
// that cannot be; the report then says why.
func (c *checker) widened(after *onnx.Model, f *forward, native feeds) (*wide, error) {
	size := int64(0)
	for _, t := range after.Graph.Initializers {
		n, _ := t.Elements()
		size += n * int64(t.Type.Size())
	}
	if size > maxWide {
		c.rep.Why = fmt.Sprintf("the weights take %d MB", size>>20)
		return nil, nil
	}
	w, err := c.tryWide(after, f)
	if err == nil {
		return w, nil
	}
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	c.rep.Why = reason(err)
	return nil, nil
}

// reason says in a few words why a model does not run in float64.
func reason(err error) string {
	s := err.Error()
	if _, op, ok := strings.Cut(s, "Could not find an implementation for "); ok {
		op, _, _ = strings.Cut(op, "(")
		return "the runtime has no float64 kernel for " + op
	}
	if _, op, ok := strings.Cut(s, "of operator ("); ok && strings.Contains(s, "'tensor(double)'") {
		op, _, _ = strings.Cut(op, ")")
		return op + " has no float64 form"
	}
	if _, op, ok := strings.Cut(s, "Status Message: "); ok {
		return "in float64 the runtime says: " + op
	}
	var e *ort.UnavailableError
	if errors.As(err, &e) && e.Err != nil {
		s = e.Err.Error()
	}
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return "in float64 the runtime says: " + s
}

func (c *checker) tryWide(after *onnx.Model, f *forward) (*wide, error) {
	m := deepClone(f.model)
	c.fix(m, f.feed)
	if err := c.double(m); err != nil {
		return nil, err
	}
	unoptimized := c.o.Runtime
	unoptimized.Unoptimized = true
	if err := c.rebase(m, f.rounded, wideFeeds(f.feed), unoptimized); err != nil {
		return nil, err
	}
	p, err := open(c.ctx, m, []string{output}, unoptimized)
	if err != nil {
		return nil, err
	}
	ff := *f
	ff.program, ff.feed, ff.elem = p, wideFeeds(f.feed), onnx.Double
	if _, err := ff.run(c.ctx, ff.feed); err != nil {
		p.close()
		return nil, err
	}
	back := deepClone(after)
	c.fix(back, c.feed)
	err = c.double(back)
	w := &wide{forward: &ff}
	if err == nil {
		w.grads, err = run(c.ctx, back, c.res.Grads, wideFeeds(c.feed), unoptimized)
	}
	if err != nil {
		c.rep.Why = "the gradient itself is in float32: " + reason(err)
	}
	return w, nil
}

// fix states the sizes that m is run with, so that all that follows from them is
// known.
func (c *checker) fix(m *onnx.Model, f feeds) {
	for _, v := range m.Graph.Inputs {
		t := f[v.Name]
		if t == nil {
			continue
		}
		v.Type.Shape = make([]onnx.ShapeDim, len(t.Shape))
		for i, n := range t.Shape {
			v.Type.Shape[i].Value = n
		}
	}
	// What the file says of others is in terms of the names.
	m.Graph.ValueInfos = nil
	for _, v := range m.Graph.Outputs {
		for i := range v.Type.Shape {
			v.Type.Shape[i] = onnx.ShapeDim{Value: -1}
		}
	}
}

func wideFeeds(f feeds) feeds {
	out := feeds{}
	for k, t := range f {
		if _, ok := t.Data.([]float32); ok {
			t = &ort.Tensor{Shape: t.Shape, Data: t.Float64s()}
		}
		out[k] = t
	}
	return out
}
