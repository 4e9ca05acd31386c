package build_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/onnx/internal/gradtest"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestBuilderRename: a value takes a name everywhere, and equal nodes are still found;
// a value that is older than the nodes in question is copied.
func TestBuilderRename(t *testing.T) {
	g := gradtest.NewGen(18, onnx.Float, false, 1)
	x := g.Float(shape.Dims(2, 3), g.Signed)
	old := g.Op("Neg", []value{x})
	since := len(g.Model().Graph.Nodes)
	a := g.Op("Exp", []value{x})
	b := g.Mul(a, a)
	g.Rename(since, a, "a")
	g.Rename(since, b, "b")
	g.Rename(since, old, "copy")
	if g.Op("Exp", []value{x}) != "a" || g.Mul("a", "a") != "b" || g.Op("Neg", []value{x}) != old {
		t.Error("a renamed node was written again")
	}
	if w := g.Writer("b"); w == nil || !slices.Equal(w.Inputs, []value{"a", "a"}) || g.Writer(b) != nil {
		t.Errorf("b is written by %v", w)
	}
	if s, ok := g.Shape("a"); !ok || shape.String(s) != "[2, 3]" {
		t.Errorf("a has shape %s", shape.String(s))
	}
	g.Out("a", "b", "copy")
	if err := gradtest.SameAsRun(g, true); err != nil {
		t.Error(err)
	}
}

// TestBuilderReplace: nodes written later take the place of one that was read before, with those of their
// inputs that were written later too.
func TestBuilderReplace(t *testing.T) {
	g := gradtest.NewGen(18, onnx.Float, false, 1)
	x := g.Float(shape.Dims(2, 3), g.Signed)
	old := g.OpN("", "Softplus", 1, []value{x})[0]
	n := g.Writer(old)
	reader := g.Op("Neg", []value{old})
	shared := g.Op("Exp", []value{x})
	since := len(g.Model().Graph.Nodes)
	sum := g.Add(g.Scalar(1, x), shared)
	g.Op("Abs", []value{sum})
	g.Replace(n, since, []value{g.Op("Log", []value{sum})})
	var ops []string
	for i, k := range g.Model().Graph.Nodes {
		ops = append(ops, k.Op)
		if got := g.Builder.Between(map[value]bool{x: true}, k.Outputs); got[len(got)-1] != k {
			t.Errorf("node %d, %s, is not found where it stands", i, k.Op)
		}
	}
	if want := []string{"Exp", "Add", "Log", "Neg", "Abs"}; !slices.Equal(ops, want) {
		t.Errorf("the nodes are %v, not %v", ops, want)
	}
	if g.Writer(reader).Inputs[0] != old {
		t.Error("the reader reads something else")
	}
	g.Out(old, reader)
	if err := gradtest.SameAsRun(g, true); err != nil {
		t.Error(err)
	}
}

// TestBuilderTry: what fails leaves nothing behind.
func TestBuilderTry(t *testing.T) {
	g := gradtest.NewGen(18, onnx.Float, false, 1)
	x := g.Float(shape.Dims(2), g.Signed)
	y := g.Op("Exp", []value{x})
	nodes, constants := len(g.Model().Graph.Nodes), len(g.Model().Graph.Initializers)
	bad := errors.New("bad")
	var gone value
	err := g.Try(func() {
		gone = g.Add(g.Op("Exp", []value{x}), g.Scalar(7, x))
		g.Fail(bad)
	})
	if err != bad || g.Err() != nil {
		t.Errorf("got %v, and then %v", err, g.Err())
	}
	if m := g.Model().Graph; len(m.Nodes) != nodes || len(m.Initializers) != constants || g.Writer(gone) != nil {
		t.Errorf("%d nodes and %d constants are left, of %d and %d", len(m.Nodes), len(m.Initializers), nodes, constants)
	}
	if g.Op("Exp", []value{x}) != y {
		t.Error("an older node was forgotten")
	}
	if err := g.Try(func() { y = g.Add(y, g.Scalar(7, x)) }); err != nil {
		t.Error(err)
	}
	g.Out(y)
	if err := gradtest.SameAsRun(g, true); err != nil {
		t.Error(err)
	}
}

// TestBuilderWant: an output that was left out gets a name and a shape.
func TestBuilderWant(t *testing.T) {
	g := gradtest.NewGen(18, onnx.Float, false, 1)
	x := g.Float(shape.Dims(2, 4), g.Signed)
	k := g.Ints(2)
	n := &onnx.Node{Op: "TopK", Inputs: []value{x, k}, Outputs: []value{"", "at"}}
	g.Append(n)
	v := g.Want(n, 0)
	if v == "" || g.Want(n, 0) != v || g.Want(n, 1) != "at" || g.Writer(v) != n {
		t.Errorf("the output is called %q", v)
	}
	g.Out(v, "at", g.MatMul(v, g.Weights(onnx.NewFloat("", []int64{2, 3}, make([]float32, 6)))))
	if err := gradtest.SameAsRun(g, true); err != nil {
		t.Error(err)
	}
}
