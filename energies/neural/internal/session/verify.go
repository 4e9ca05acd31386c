package session

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// verification is what it takes to compare a provider with the CPU provider on a graph.
type verification struct {
	graph    *onnx.Model
	options  ort.Options
	provider string
}

// verify runs the graph once with the CPU provider too, on the inputs of the first run, and
// compares all outputs; then it runs the chains in reverse order. A sampler with a wrong gradient is
// slow, and one with a wrong U draws from another distribution, so a provider that computes either
// wrongly is refused: the error is an *ort.UnavailableError that names the output and the first node
// that differs.
func (v *verification) verify(ctx context.Context, s *Session, in map[string]*ort.Tensor) error {
	have := make([]*ort.Tensor, len(v.graph.Graph.Outputs))
	if err := s.run(ctx, in, have); err != nil {
		return err
	}
	bad, err := v.compare(ctx, v.graph, in, have, 0)
	if err == nil && bad == "" {
		in = v.reverse(in, have)
		bad, err = v.compareReversed(ctx, s, in, have)
	}
	if err != nil || bad == "" {
		return err
	}
	where, err := v.bisect(ctx, in)
	if err != nil {
		return err
	}
	title := v.options.Name
	if title == "" {
		title = "the model"
	}
	return &ort.UnavailableError{What: fmt.Sprintf("provider %s computes %s wrongly: %s; %s", v.provider, title, bad, where), Do: v.options.WithoutProvider() + ", or another precision"}
}

// reverse returns the inputs with the chains in reverse order. The first output has one row for each
// chain. An input with an open first dimension has as many rows, or a block of rows for each chain.
func (v *verification) reverse(in map[string]*ort.Tensor, have []*ort.Tensor) map[string]*ort.Tensor {
	moved := maps.Clone(in)
	for _, info := range v.graph.Graph.Inputs {
		if dims := info.Type.Shape; len(dims) > 0 && dims[0].Value < 0 && in[info.Name] != nil {
			moved[info.Name] = reversed(in[info.Name], have[0])
		}
	}
	return moved
}

// reversed returns t with its blocks of rows, one for each row of u, in reverse order, and t itself if
// it has no such blocks.
func reversed(t, u *ort.Tensor) *ort.Tensor {
	if len(t.Shape) == 0 || len(u.Shape) == 0 || u.Shape[0] < 2 || t.Shape[0]%u.Shape[0] != 0 {
		return t
	}
	chains, from := int(u.Shape[0]), reflect.ValueOf(t.Data)
	to, block := reflect.MakeSlice(from.Type(), from.Len(), from.Len()), from.Len()/chains
	for lo := 0; lo < from.Len() && block > 0; lo += block {
		reflect.Copy(to.Slice(lo, lo+block), from.Slice(from.Len()-lo-block, from.Len()-lo))
	}
	return &ort.Tensor{Shape: t.Shape, Data: to.Interface()}
}

// compareReversed runs the session on chains in reverse order. The outputs must be those of the first
// run, have, in reverse order. If not, the graph may mix chains, or another size may be a multiple of the
// number of chains; then the results of the CPU provider decide.
func (v *verification) compareReversed(ctx context.Context, s *Session, in map[string]*ort.Tensor, have []*ort.Tensor) (string, error) {
	again := make([]*ort.Tensor, len(have))
	if err := s.run(ctx, in, again); err != nil {
		return "", err
	}
	want := make([]*ort.Tensor, len(have))
	for k, t := range have {
		want[k] = reversed(t, have[0])
	}
	bad := v.difference(v.graph, want, again, 0, "before")
	if bad == "" {
		return "", nil
	}
	wrong, err := v.compare(ctx, v.graph, in, again, 0)
	if err != nil || wrong == "" {
		return "", err
	}
	return "with chains in reverse order " + bad, nil
}

// compare returns the largest difference between outputs, from number first on, and those of
// the CPU provider; see difference.
func (v *verification) compare(ctx context.Context, g *onnx.Model, in map[string]*ort.Tensor, have []*ort.Tensor, first int) (string, error) {
	want, err := runOnce(ctx, g, v.options.CPU(), in)
	if err != nil {
		return "", err
	}
	return v.difference(g, want, have, first, "on cpu"), nil
}

// difference describes the largest difference of have from want, whose origin is given, in the outputs
// from number first on. It is "" where all are within the tolerance. Errors are relative to the largest
// entry of an output; of U, a number a chain, to 1 nat where that is larger.
func (v *verification) difference(g *onnx.Model, want, have []*ort.Tensor, first int, origin string) string {
	bound := ort.Tolerance(v.provider)
	for k, out := range g.Graph.Outputs[first:] {
		k += first
		a, b := want[k].Float64s(), have[k].Float64s()
		if len(a) != len(b) {
			return fmt.Sprintf("output %q has shape %v, %s %v", out.Name, have[k].Shape, origin, want[k].Shape)
		}
		scale := 0.0
		if len(want[k].Shape) <= 1 {
			scale = 1
		}
		for _, x := range a {
			if !math.IsInf(x, 0) && !math.IsNaN(x) {
				scale = max(scale, math.Abs(x))
			}
		}
		worst, at := 0.0, 0
		for i := range a {
			if off := distance(a[i], b[i]) / max(scale, math.SmallestNonzeroFloat32); off > worst {
				worst, at = off, i
			}
		}
		if worst > bound {
			return fmt.Sprintf("output %q at %d is %.6g, %s %.6g (relative error %.2g, at most %.2g is allowed)", out.Name, at, b[at], origin, a[at], worst, bound)
		}
	}
	return ""
}

// distance is |a - b|, 0 where both are the same infinity or NaN, infinite where one is.
func distance(a, b float64) float64 {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return 0
	}
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// bisect searches the first node, in the order of the graph, whose result differs when it is
// read as an output too. Reading results keeps the provider from fusing nodes, so that the
// difference may vanish; the search then says so.
func (v *verification) bisect(ctx context.Context, in map[string]*ort.Tensor) (string, error) {
	g := v.graph.Clone()
	rewrite.Sort(g)
	vals, err := shape.Infer(g)
	if err != nil {
		return "", err
	}
	type result struct {
		node *onnx.Node
		name string
	}
	var list []result
	for _, n := range g.Graph.Nodes {
		for _, name := range n.Outputs {
			if info := vals[name]; info != nil && info.Type == onnx.Float && g.Graph.Output(name) == nil {
				list = append(list, result{n, name})
			}
		}
	}
	last := len(g.Graph.Outputs)
	differs := func(k int) (bool, error) {
		one := g.Clone()
		one.Graph.Outputs = append(one.Graph.Outputs, &onnx.ValueInfo{Name: list[k].name, Type: onnx.Type{Elem: onnx.Float}})
		have, err := runOnce(ctx, one, v.options, in)
		if err != nil {
			return false, err
		}
		bad, err := v.compare(ctx, one, in, have, last)
		return bad != "", err
	}
	lo, hi := 0, len(list)
	for lo < hi {
		mid := (lo + hi) / 2
		bad, err := differs(mid)
		if err != nil {
			return "", err
		}
		if bad {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(list) {
		return "every node before it agrees when its result is read alone", nil
	}
	return "the first result that differs is that of " + list[lo].node.Label(), nil
}

// runOnce opens a graph, runs it and closes it.
func runOnce(ctx context.Context, g *onnx.Model, o ort.Options, in map[string]*ort.Tensor) ([]*ort.Tensor, error) {
	s, err := open(ctx, g, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := make([]*ort.Tensor, len(g.Graph.Outputs))
	return out, s.run(ctx, in, out)
}
