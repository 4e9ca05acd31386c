package rewrite_test

import (
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/grad/gradtest"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestPadHidden: hidden layers of 1024 become 1040 where zeros stay zeros, and outputs and
// gradients are what they were.
func TestPadHidden(t *testing.T) {
	const w = 1024
	mlp := func(f func(g *gen, h value) value) func(g *gen, x value) value {
		return func(g *gen, x value) value {
			h := g.Add(g.MatMul(x, constant(g, 3, w)), constant(g, w))
			return g.Scale(g.MatMul(f(g, h), constant(g, w, 2)), 1.0/w)
		}
	}
	op := func(name string) func(g *gen, h value) value {
		return mlp(func(g *gen, h value) value { return g.Op(name, []value{h}) })
	}
	for name, c := range map[string]struct {
		write func(g *gen, x value) value
		wide  bool
	}{
		"relu": {op("Relu"), true},
		"quick gelu": {mlp(func(g *gen, h value) value {
			return g.Mul(h, g.Op("Sigmoid", []value{g.Scale(h, 1.702)}))
		}), true},
		"gelu": {mlp(func(g *gen, h value) value {
			p := g.Add(g.Op("Erf", []value{g.Div(h, g.Scalar(1.4142135, h))}), g.Scalar(1, h))
			return g.Scale(g.Mul(h, p), 0.5)
		}), true},
		"two gates, two readers": {func(g *gen, x value) value {
			a, b := g.MatMul(x, constant(g, 3, w)), g.MatMul(x, g.Transpose(constant(g, w, 3), 1, 0))
			h := g.Mul(g.Op("Sigmoid", []value{a}), b)
			return g.Scale(g.Add(g.MatMul(h, constant(g, w, 2)), g.MatMul(g.Neg(h), constant(g, w, 2))), 1.0/w)
		}, true},
		"no product before": {func(g *gen, x value) value {
			return g.Scale(g.MatMul(g.Expand(g.ReduceMean(x, []int64{2}, true), g.Ints(1, 1, w)), constant(g, w, 2)), 1.0/w)
		}, false},
		"infinite at zero":       {mlp(func(g *gen, h value) value { return g.Op("Exp", []value{g.Op("Log", []value{g.Mul(h, h)})}) }), false},
		"divided by the layer":   {mlp(func(g *gen, h value) value { return g.Div(g.Scalar(1, h), h) }), false},
		"divided by a vector":    {mlp(func(g *gen, h value) value { return g.Div(h, constant(g, w)) }), false},
		"the layer's softmax":    {mlp(func(g *gen, h value) value { return g.Op("Softmax", []value{h}, onnx.IntAttr("axis", -1)) }), false},
		"read by something else": {mlp(func(g *gen, h value) value { g.Output("mean", g.ReduceMean(h, []int64{2}, true)); return h }), false},
		"an output":              {mlp(func(g *gen, h value) value { y := g.Neg(h); g.Output("layer", y); return y }), false},
		"a matrix that is fed": {func(g *gen, x value) value {
			return g.MatMul(g.MatMul(x, constant(g, 3, w)), g.Fixed(shape.Dims(w, 2), g.Signed))
		}, false},
		"of another width": {func(g *gen, x value) value { return g.MatMul(g.MatMul(x, constant(g, 3, 1000)), constant(g, 1000, 2)) }, false},
	} {
		for trial := range uint64(2) {
			g := gradtest.NewGen(18, onnx.Float, trial == 0, trial)
			x := g.Float([]shape.Dim{g.Dim(), shape.D(2), shape.D(3)}, g.Signed)
			g.Output("y", c.write(g, x))
			if g.Err() != nil {
				t.Fatalf("%s: %v", name, g.Err())
			}
			m := g.Model().Clone()
			rewrite.Prune(m.Graph)
			plain := m.Clone()
			if err := rewrite.PadHidden(m); err != nil {
				t.Fatal(err)
			}
			wide := false
			vals, err := shape.Infer(m)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, n := range m.Graph.Nodes {
				y := vals[n.Outputs[0]]
				last := y.Shape[max(0, y.Rank()-1)]
				wide = wide || last.Is(w+16)
				if c.wide && last.Is(w) {
					t.Errorf("%s: %s is still %d wide", name, n.Label(), w)
				}
			}
			if wide != c.wide {
				t.Errorf("%s: the layer is wider: %v", name, wide)
			}
			same(t, name, plain, m, g.Feeds)
			if !c.wide {
				continue
			}
			o := grad.Options{Of: "y", Wrt: []string{x}, Reduce: grad.ReduceSum}
			a, err := grad.Append(plain, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b, err := grad.Append(m, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			same(t, name+", gradient", a.Model, b.Model, g.Feeds)
		}
	}
}

// same runs both models and compares what they compute.
func same(t *testing.T, name string, plain, m *onnx.Model, feeds gradtest.Feeds) {
	t.Helper()
	want, err := gradtest.Run(plain, feeds)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := gradtest.Run(m, feeds)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for k := range want {
		if err := gradtest.Near(got[k], want[k], 1e-5); err != nil {
			t.Errorf("%s, output %s: %v", name, k, err)
		}
	}
}
