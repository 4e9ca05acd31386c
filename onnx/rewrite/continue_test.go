package rewrite_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/onnx/internal/gradtest"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// causalGraph is a random network on [batch, rows, 6] whose rows look back only.
type causalGraph struct {
	rowGraph
	mask, ids value
}

// newCausalGraph has masks of the forms and numbers that exporters write.
func newCausalGraph(trial int) *causalGraph {
	g := &causalGraph{rowGraph: rowGraph{gen: gradtest.NewGen(18, onnx.Float, trial%3 > 0, uint64(trial)), width: shape.D(6)}}
	g.batch, g.seq = g.Dim(), g.Dim()
	one := shape.D(1)
	full := [][]shape.Dim{{g.seq, g.seq}, {one, one, g.seq, g.seq}, {g.batch, one, g.seq, g.seq}}[g.R.IntN(3)]
	never := []float64{math.Inf(-1), -math.MaxFloat32}[g.R.IntN(2)]
	dims, n := g.Numbers(full)
	t, data := int(g.Size(g.seq)), make([]float64, n)
	for k := range data {
		if k%t > k/t%t {
			data[k] = never
		}
	}
	g.mask = g.Feed(onnx.Float, full, gradtest.Tensor(onnx.Float, dims, data))
	g.ids = g.Indices([]shape.Dim{g.batch, g.seq}, 9, onnx.Int64, false)
	return g
}

// layer treats rows one by one.
func (g *causalGraph) layer(x value) value {
	w, one := g.width, shape.D(1)
	switch g.R.IntN(10) {
	case 0:
		return g.OpN("", "LayerNormalization", 1, []value{x, g.weight(w), g.weight(w)})[0]
	case 1: // a table of positions, or one that is broadcast
		return g.Add(x, g.weight([][]shape.Dim{{g.seq, w}, {one, g.seq, w}, {g.seq, one}, {one, one, w}}[g.R.IntN(4)]...))
	case 2:
		return g.Sub(x, g.ReduceMean(x, []int64{2}, true))
	case 3: // rows first, and as one axis with the batch
		t := g.ReshapeTo(g.Transpose(x, 1, 0, 2), []shape.Dim{g.seq.Mul(g.batch), w}, x)
		t = g.Op("Gemm", []value{t, g.weight(w, w), g.weight(w)}, onnx.IntAttr("transB", 1))
		return g.Transpose(g.ReshapeTo(t, []shape.Dim{g.seq, g.batch, w}, x), 1, 0, 2)
	case 4: // behind the batch in one axis
		t := g.ReshapeTo(x, []shape.Dim{g.batch.Mul(g.seq), w}, x)
		return g.ReshapeTo(g.Op("Gemm", []value{t, g.weight(w, w)}), []shape.Dim{g.batch, g.seq, w}, x)
	case 5:
		p := g.OpN("", "Split", 2, []value{x, g.Ints(2, 4)}, onnx.IntAttr("axis", -1))
		return g.Op("Concat", []value{g.Op("Tanh", p[1:]), p[0]}, onnx.IntAttr("axis", 2))
	case 6:
		s := g.Op("Slice", []value{x, g.Ints(2), g.Ints(6), g.Ints(2)})
		return g.Op("Concat", []value{s, g.Op("Slice", []value{x, g.Ints(0), g.Ints(2), g.Ints(-1)})}, onnx.IntAttr("axis", -1))
	case 8: // a part that nobody reads
		p := g.OpN("", "Split", 2, []value{x, g.Ints(2, 4)}, onnx.IntAttr("axis", -1))
		return g.Op("Concat", []value{g.Op("Slice", []value{p[1], g.Ints(0), g.Ints(2), g.Ints(2)}), p[1]}, onnx.IntAttr("axis", 2))
	case 7: // a table that takes its size from the rows
		e := g.Expand(g.weight(g.seq, one), g.Op("Shape", []value{x}))
		return g.Op("Where", []value{g.Op("Greater", []value{e, g.Scalar(0, x)}), x, g.Neg(x)})
	}
	return g.Op("Relu", []value{g.Add(g.MatMul(x, g.weight(w, w)), g.weight(w))})
}

// attend is attention of two heads, laid out as exporters do.
func (g *causalGraph) attend(x value) value {
	w, two, three := g.width, shape.D(2), shape.D(3)
	var q, k, v value // [batch, head, row, 3]
	switch form := g.R.IntN(3); form {
	case 0:
		heads := func() value {
			return g.Transpose(g.Reshape(g.Add(g.MatMul(x, g.weight(w, w)), g.weight(w)), g.Ints(0, 0, 2, 3)), 0, 2, 1, 3)
		}
		q, k, v = heads(), heads(), heads()
	case 1: // one product for all three
		p := g.OpN("", "Split", 3, []value{g.MatMul(x, g.weight(w, shape.D(18))), g.Ints(6, 6, 6)}, onnx.IntAttr("axis", 2))
		for i, to := range []*value{&q, &k, &v} {
			*to = g.Transpose(g.Reshape(p[i], g.Ints(0, 0, 2, 3)), 0, 2, 1, 3)
		}
	case 2: // rows first
		p := g.MatMul(g.Transpose(x, 1, 0, 2), g.weight(w, shape.D(18)))
		p = g.ReshapeTo(p, []shape.Dim{g.seq, g.batch, three, w}, x)
		p = g.Transpose(p, 2, 0, 1, 3)
		for i, to := range []*value{&q, &k, &v} {
			one := g.Gather(p, g.Const(onnx.NewInt64("", nil, []int64{int64(i)})), 0) // [row, batch, 6]
			one = g.Transpose(g.ReshapeTo(one, []shape.Dim{g.seq, g.batch.Mul(two), three}, x), 1, 0, 2)
			*to = g.ReshapeTo(one, []shape.Dim{g.batch, two, g.seq, three}, x)
		}
	}
	merged := g.R.IntN(3) == 0 // batch and heads in one axis, but for the mask
	split, joined := []shape.Dim{g.batch, two, g.seq, g.seq}, []shape.Dim{g.batch.Mul(two), g.seq, g.seq}
	if merged {
		for _, p := range []*value{&q, &k, &v} {
			*p = g.ReshapeTo(*p, []shape.Dim{g.batch.Mul(two), g.seq, three}, x)
		}
	}
	s := g.Scale(g.MatMul(q, g.SwapLast(k)), 0.5)
	if merged {
		s = g.ReshapeTo(s, split, x)
	}
	s = g.Add(s, g.mask)
	if merged {
		s = g.ReshapeTo(s, joined, x)
	}
	y := g.MatMul(g.Op("Softmax", []value{s}, onnx.IntAttr("axis", -1)), v)
	if merged {
		y = g.ReshapeTo(y, []shape.Dim{g.batch, two, g.seq, three}, x)
	}
	y = g.ReshapeTo(g.Transpose(y, 0, 2, 1, 3), []shape.Dim{g.batch, g.seq, w}, x)
	return g.Add(x, g.MatMul(y, g.weight(w, w)))
}

// continued gives the rows of y from number early to last by ContinueRows, with what it
// needs fed out of a run of the whole graph, and those of the whole graph.
func (g *causalGraph) continued(x, y value, early, last int64) (rows, want *ort.Tensor, err error) {
	whole := g.Model().Clone()
	numbers := func(lo, hi int64) value {
		var list []int64
		for k := lo; k < hi; k++ {
			list = append(list, k)
		}
		name := fmt.Sprintf("n%d", lo)
		g.Sizes[name] = hi - lo
		return g.Feed(onnx.Int64, []shape.Dim{shape.Sym(name)}, &ort.Tensor{Shape: []int64{hi - lo}, Data: list})
	}
	k := rewrite.KnownRows{From: x, Axis: 1, Rows: g.seq, Outer: shape.D(1), Early: numbers(0, early), Late: numbers(early, last+1), Varies: []value{g.ids}, Prefix: "kept/"}
	late := pickRows(gradtest.Tensor(onnx.Double, g.Feeds[x].Shape, g.Feeds[x].Float64s()), g.Feeds[k.Late], false)
	dims, _ := g.Builder.Shape(k.Late)
	k.Next = g.Feed(onnx.Float, []shape.Dim{g.batch, dims[0], g.width}, gradtest.Tensor(onnx.Float, late.Shape, late.Float64s()))
	c, ok := rewrite.ContinueRows(g.Builder, y, k)
	if !ok {
		return nil, nil, fmt.Errorf("rows are not continued: %v", g.Err())
	}
	b, err := build.New(whole, "w/", nil)
	if err != nil {
		return nil, nil, err
	}
	b.Output("whole", y)
	for i, k := range c.Kept {
		b.Output(fmt.Sprint("of/", i), k.Of)
	}
	all, err := gradtest.Run(whole, g.Feeds)
	if err != nil {
		return nil, nil, err
	}
	for i, k := range c.Kept {
		g.Feeds[k.Input] = firstRows(all[fmt.Sprint("of/", i)], k.Axis, early)
	}
	g.Output("rows", c.Rows)
	rewrite.Sort(g.Model())
	rewrite.Prune(g.Model().Graph)
	for _, n := range g.Model().Graph.Nodes {
		if slices.Contains(n.Inputs, x) {
			return nil, nil, fmt.Errorf("%s reads all rows", n.Label())
		}
	}
	got, err := gradtest.Run(g.Model(), g.Feeds)
	if err != nil {
		return nil, nil, err
	}
	return got["rows"], pickRows(all["whole"], g.Feeds[k.Late], false), nil
}

// firstRows is the slow transcription: entries of an axis, one number at a time.
func firstRows(x *ort.Tensor, axis int, rows int64) *ort.Tensor {
	inner := int64(1)
	for _, d := range x.Shape[axis+1:] {
		inner *= d
	}
	var out []float64
	for k, v := range x.Float64s() {
		if int64(k)/inner%x.Shape[axis] < rows {
			out = append(out, v)
		}
	}
	shape := slices.Clone(x.Shape)
	shape[axis] = rows
	return gradtest.Tensor(onnx.Float, shape, out)
}

// TestContinueRows: late rows of random causal networks equal those of the whole network.
func TestContinueRows(t *testing.T) {
	for trial := range 100 {
		g := newCausalGraph(trial)
		x := g.Float([]shape.Dim{g.batch, g.seq, g.width}, g.Signed)
		y := x
		for range g.Between(1, 3) {
			for range g.Between(0, 2) {
				y = g.layer(y)
			}
			y = g.attend(y)
		}
		n := g.Size(g.seq)
		early := int64(g.Between(1, int(n-1)))
		last := int64(g.Between(int(early), int(n-1)))
		rows, want, err := g.continued(x, y, early, last)
		if err != nil {
			t.Errorf("trial %d: %v", trial, err)
			continue
		}
		if err := gradtest.Near(rows, want, 1e-4); err != nil {
			t.Errorf("trial %d, rows %d to %d of %d: %v", trial, early, last, n, err)
		}
	}
}

// TestContinueRowsRefuses: graphs whose rows depend on each other in other ways are not
// continued.
func TestContinueRowsRefuses(t *testing.T) {
	for name, write := range map[string]func(g *causalGraph, x value) value{
		"the mean of rows": func(g *causalGraph, x value) value { return g.Add(x, g.ReduceMean(x, []int64{1}, true)) },
		"a matrix":         func(g *causalGraph, x value) value { return g.MatMul(g.weight(g.batch, g.seq, g.seq), x) },
		"sums of rows":     func(g *causalGraph, x value) value { return g.Op("CumSum", []value{x, g.Ints(1)}) },
		"rows turned round": func(g *causalGraph, x value) value {
			return g.Refine(g.Op("Slice", []value{x, g.Ints(-1), g.Ints(math.MinInt64), g.Ints(1), g.Ints(-1)}), []shape.Dim{g.batch, g.seq, g.width})
		},
		"a softmax of rows": func(g *causalGraph, x value) value { return g.Op("Softmax", []value{x}, onnx.IntAttr("axis", 1)) },
		"no mask": func(g *causalGraph, x value) value {
			return g.MatMul(g.Op("Softmax", []value{g.MatMul(x, g.SwapLast(x))}, onnx.IntAttr("axis", -1)), x)
		},
		"scores without softmax": func(g *causalGraph, x value) value {
			return g.MatMul(g.Add(g.MatMul(x, g.SwapLast(x)), g.weight(g.seq, g.seq)), x)
		},
		"something between mask and softmax": func(g *causalGraph, x value) value {
			s := g.Scale(g.Add(g.MatMul(x, g.SwapLast(x)), g.weight(g.seq, g.seq)), 0.01)
			return g.MatMul(g.Op("Softmax", []value{s}, onnx.IntAttr("axis", -1)), x)
		},
		"something behind softmax": func(g *causalGraph, x value) value {
			s := g.Op("Softmax", []value{g.Add(g.MatMul(x, g.SwapLast(x)), g.weight(g.seq, g.seq))}, onnx.IntAttr("axis", -1))
			return g.MatMul(g.Add(s, g.Scalar(1, s)), x)
		},
		"a softmax over the other axis": func(g *causalGraph, x value) value {
			s := g.Op("Softmax", []value{g.Add(g.MatMul(x, g.SwapLast(x)), g.weight(g.seq, g.seq))}, onnx.IntAttr("axis", -2))
			return g.MatMul(s, x)
		},
		"rows in a branch": func(g *causalGraph, x value) value {
			branch := func(name, op string) *onnx.Attribute {
				n := &onnx.Node{Op: op, Name: op, Inputs: []string{x}, Outputs: []string{op}}
				return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, G: &onnx.Graph{Name: op, Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{{Name: op, Type: onnx.Type{Elem: onnx.Float}}}}}
			}
			y := g.Op("If", []value{g.Bools(nil)}, branch("then_branch", "Neg"), branch("else_branch", "Abs"))
			return g.Refine(g.Add(y, x), []shape.Dim{g.batch, g.seq, g.width})
		},
		"a table by what varies": func(g *causalGraph, x value) value {
			return g.Add(x, g.Gather(g.weight(shape.D(9), g.width), g.ids, 0))
		},
	} {
		g := newCausalGraph(3)
		g.seq = shape.D(4)
		g.ids = g.Indices([]shape.Dim{g.batch, g.seq}, 9, onnx.Int64, false)
		x := g.Float([]shape.Dim{g.batch, g.seq, g.width}, g.Signed)
		y := write(g, x)
		if g.Err() != nil {
			t.Fatalf("%s: %v", name, g.Err())
		}
		if _, _, err := g.continued(x, g.layer(y), 1, 3); err == nil {
			t.Errorf("%s: rows are continued", name)
		}
	}
}

// TestContinueRowsMasks: the masks that have to be checked are found where they are added.
func TestContinueRowsMasks(t *testing.T) {
	g := newCausalGraph(0)
	x := g.Float([]shape.Dim{g.batch, g.seq, g.width}, g.Signed)
	y := g.attend(g.attend(x))
	n := g.Indices(shape.Dims(1), 1, onnx.Int64, false)
	dims := []shape.Dim{g.batch, shape.D(1), g.width}
	c, ok := rewrite.ContinueRows(g.Builder, y, rewrite.KnownRows{From: x, Axis: 1, Rows: g.seq, Outer: shape.D(1), Early: n, Late: n, Next: g.Float(dims, g.Signed), Varies: []value{g.ids}, Prefix: "kept/"})
	if !ok {
		t.Fatal(g.Err())
	}
	rank := g.Info(g.mask).Rank()
	if want := []rewrite.RowMask{{Of: g.mask, Row: rank - 2, Column: rank - 1}}; !slices.Equal(c.Masks, want) {
		t.Errorf("masks %v, want %v", c.Masks, want)
	}
	if len(c.Kept) == 0 || len(c.Kept) > 4 {
		t.Errorf("%d values are kept of two layers' keys and values", len(c.Kept))
	}
}
