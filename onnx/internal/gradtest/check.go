package gradtest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// precision of the differences (-f(2h) + 8f(h) - 8f(-h) + f(-2h)) / 12h. Their
// error is h⁴f⁗′/30 from the formula and about eps·|f|/h from rounding. In double
// with h = 2e-4 both are below 1e-11 for functions whose derivatives are of order
// one; 1e-7 leaves room for steep ones. In float, with h = 0.03, both are near
// 1e-6 for the same functions.
type precision struct{ h, tol, eps float64 }

func (g *Gen) precision() precision {
	switch {
	case g.Elem == onnx.Double:
		return precision{h: 2e-4, tol: 1e-7, eps: 1e-15}
	case g.Twin != nil: // differences in double of a gradient in float
		return precision{h: 2e-4, tol: 1e-5, eps: 1e-15}
	}
	return precision{h: 0.03, tol: 5e-4, eps: 5e-7}
}

// directions is the number of random directions each input is tried in. One finds
// any mistake but with probability zero; a second costs little.
const directions = 2

// Check compares the gradients of <u, outs> by each of wrt with finite
// differences, for a random u, and the shapes that inference states with those of
// the run. Order 2 then does the same to the graph of the gradient itself.
func Check(g *Gen, order int) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("building: %w", err)
	}
	native, err := g.withOutputs(g.Outs)
	if err != nil {
		return err
	}
	if err := g.upgrade(); err != nil {
		return err
	}
	for k := range order {
		seeds, err := g.backward(native, k)
		if err != nil {
			return fmt.Errorf("order %d: %w", k+1, err)
		}
		if len(g.Outs) == 0 {
			return nil
		}
		if k+1 < order {
			g.Wrt = append(g.Wrt, seeds...)
			if native, err = g.withOutputs(g.Outs); err != nil {
				return err
			}
		}
	}
	return nil
}

// upgrade brings the model to an operator set that rules read; the forward graph
// that differences are taken of stays as it was built.
func (g *Gen) upgrade() error {
	if g.Opset() >= 18 {
		return nil
	}
	m := g.Model().Clone()
	if err := rewrite.Upgrade(m, 18); err != nil {
		return fmt.Errorf("upgrading: %w", err)
	}
	b, err := build.New(m, "u/", nil)
	if err != nil {
		return fmt.Errorf("upgraded: %w", err)
	}
	for _, v := range g.distinct {
		b.MarkUnique(v)
	}
	g.Builder = b
	return nil
}

// backward appends the gradient to the graph and checks it against differences of
// the model forward. Afterwards the gradients are the outputs of g; inputs that no
// gradient depends on are no longer differentiated by.
func (g *Gen) backward(model *onnx.Model, k int) (seeds []build.Value, err error) {
	forward, err := g.openForward(model)
	if err != nil {
		return nil, fmt.Errorf("forward graph: %w", err)
	}
	defer forward.Close()
	at, err := forward.Run(g.Feeds)
	if err != nil {
		return nil, fmt.Errorf("forward graph: %w", err)
	}
	if g.Twin == nil && forward.Hybrid() || g.Twin != nil && k == 0 {
		if err := sameInFloat(model, g.Feeds, at); err != nil {
			return nil, fmt.Errorf("forward graph: %w", err)
		}
	}
	for i, o := range g.Outs {
		dims, ok := g.Shape(o)
		y := at[fmt.Sprintf("y%d", i)]
		if !ok || !g.matches(dims, y.Shape) {
			return nil, fmt.Errorf("output %q was inferred as %s and has %v", o, shape.String(dims), y.Shape)
		}
		u := make([]float64, len(Float64s(y)))
		for j := range u {
			u[j] = g.Signed()
		}
		name := fmt.Sprintf("u%d_%d", k, i)
		g.Feeds[name] = Tensor(g.Elem, y.Shape, u)
		seeds = append(seeds, g.Input(name, g.Elem, dims...))
	}
	var dx []build.Value
	for {
		var none *grad.NotDifferentiableError
		dx, err = grad.Backward(g.Builder, g.Outs, seeds, g.Wrt)
		if k == 0 || !errors.As(err, &none) || none.Obstacle != grad.NoPath {
			break
		}
		// A gradient that does not depend on an input has no second derivative.
		g.Wrt = slices.DeleteFunc(slices.Clone(g.Wrt), func(v build.Value) bool { return v == none.Value })
	}
	if err != nil || len(g.Wrt) == 0 {
		g.Outs = nil
		return nil, err
	}
	back, err := g.withOutputs(dx)
	if err != nil {
		return nil, err
	}
	err = g.compare(forward, at, back, seeds)
	g.Outs = dx
	return seeds, err
}

// openForward opens what differences are taken of.
func (g *Gen) openForward(model *onnx.Model) (*Program, error) {
	if g.Twin == nil {
		return Open(model)
	}
	// A copy through the file: widening writes into attributes, which clones share.
	raw, err := onnx.Encode(model)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Decode(raw)
	if err != nil {
		return nil, err
	}
	if err := g.Twin(m); err != nil {
		return nil, fmt.Errorf("twin: %w", err)
	}
	if _, err := rewrite.WidenDouble(m); err != nil {
		return nil, fmt.Errorf("twin: %w", err)
	}
	p, err := Open(m)
	if err == nil {
		p.wide = true
	}
	return p, err
}

// withOutputs returns a copy of the model with copies of values as outputs y0, y1…,
// prepared for the runtime.
func (g *Gen) withOutputs(values []build.Value) (*onnx.Model, error) {
	m := g.Model().Clone()
	m.Graph.Outputs = nil
	for i, v := range values {
		name := fmt.Sprintf("y%d", i)
		info := g.Info(v)
		out := &onnx.ValueInfo{Name: name, Type: onnx.Type{Elem: info.Type, HasShape: info.Known}}
		for _, d := range info.Shape {
			// Sizes, not symbols: the runtime refuses an output of another shape.
			n, ok := d.Bind(g.Sizes).Const()
			if !ok {
				n = -1
			}
			out.Type.Shape = append(out.Type.Shape, onnx.ShapeDim{Value: n})
		}
		m.Graph.Nodes = append(m.Graph.Nodes, &onnx.Node{Op: "Identity", Inputs: []string{v}, Outputs: []string{name}})
		m.Graph.Outputs = append(m.Graph.Outputs, out)
	}
	if g.Prepare == nil {
		return m, nil
	}
	return m, g.Prepare(m)
}

// matches reports whether an inferred shape can be that of a run.
func (g *Gen) matches(full []shape.Dim, dims []int64) bool {
	return slices.EqualFunc(full, dims, func(d shape.Dim, n int64) bool {
		v, ok := d.Bind(g.Sizes).Const()
		return !ok || v == n
	})
}

func (g *Gen) compare(f *Program, at Feeds, backward *onnx.Model, seeds []build.Value) error {
	if err := onnx.Check(backward); err != nil {
		return err
	}
	program, err := Open(backward)
	if err != nil {
		return fmt.Errorf("gradient graph: %w", err)
	}
	defer program.Close()
	back, err := program.Run(g.Feeds)
	if err == nil && program.Hybrid() {
		err = sameInFloat(backward, g.Feeds, back)
	}
	if err != nil {
		return fmt.Errorf("gradient graph: %w", err)
	}
	// Rounding of the outputs bounds what differences can tell.
	p, noise := g.precision(), 0.0
	for i, s := range seeds {
		noise += absDot(Float64s(g.Feeds[s]), Float64s(at[fmt.Sprintf("y%d", i)]))
	}
	for i, w := range g.Wrt {
		d := back[fmt.Sprintf("y%d", i)]
		x := g.Feeds[w]
		if !slices.Equal(d.Shape, x.Shape) {
			return fmt.Errorf("the gradient by %q has shape %v, the input %v", w, d.Shape, x.Shape)
		}
		for range directions {
			if err := g.direction(f, w, x, Float64s(d), seeds, p, noise); err != nil {
				return err
			}
		}
	}
	return nil
}

// direction compares <u, J v> with <d, v> for one random v.
func (g *Gen) direction(f *Program, w build.Value, x *ort.Tensor, d []float64, seeds []build.Value, p precision, noise float64) error {
	v := make([]float64, len(d))
	for i := range v {
		v[i] = 2*g.R.Float64() - 1
	}
	elem := g.Elem
	if f.wide {
		elem = onnx.Double
	}
	terms := map[build.Value][]float64{}
	for _, step := range []struct{ at, weight float64 }{{2, -1}, {1, 8}, {-1, -8}, {-2, 1}} {
		moved := slices.Clone(Float64s(x))
		for i := range moved {
			moved[i] += step.at * p.h * v[i]
		}
		feeds := Feeds{}
		for k, t := range g.Feeds {
			feeds[k] = t
		}
		feeds[w] = Tensor(elem, x.Shape, moved)
		out, err := f.Run(feeds)
		if err != nil {
			return err
		}
		for i, s := range seeds {
			y, u := Float64s(out[fmt.Sprintf("y%d", i)]), Float64s(g.Feeds[s])
			if terms[s] == nil {
				terms[s] = make([]float64, len(u))
			}
			for j := range u {
				terms[s][j] += step.weight * u[j] * y[j] / (12 * p.h)
			}
		}
	}
	var want, got, scale float64
	for _, t := range terms {
		for _, e := range t {
			want += e
			scale += math.Abs(e)
		}
	}
	for i := range d {
		got += d[i] * v[i]
		scale += math.Abs(d[i] * v[i])
	}
	if bound := p.tol*scale + p.eps*noise/p.h; !(math.Abs(got-want) <= bound) {
		return fmt.Errorf("gradient by %q %v along a direction is %.9g, finite differences give %.9g (allowed %.2g)", w, x.Shape, got, want, bound)
	}
	return nil
}

func absDot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += math.Abs(a[i] * b[i])
	}
	return s
}
