package onnx_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/gradtest"
	"github.com/gradhop/gradhop/onnx/ort"
)

// inferCase makes random calls of one operator.
type inferCase struct {
	build func(g *gradtest.Gen)
	since int64 // first operator set with it
	// opsets, where given, are tried instead of the usual ones.
	opsets []int64
	// open says why dimensions may stay unknown without symbols.
	open string
}

// inferCases is filled by the init functions of infer_cases_*_test.go.
var inferCases = map[string]inferCase{}

// TestInfer compares what Infer says of the output of every operator it knows
// with what the runtime returns: type, rank, every dimension that is known, and
// elements where they are known. An operator without a case fails.
func TestInfer(t *testing.T) {
	for _, op := range onnx.InferOperators() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			c, ok := inferCases[op]
			if !ok {
				t.Fatalf("inference of %s has no case", op)
			}
			opsets := []int64{11, 13, 18, 20}
			if c.opsets != nil {
				opsets = c.opsets
			}
			for _, opset := range opsets {
				for trial := range 8 {
					if opset < c.since {
						continue
					}
					g := gradtest.NewGen(opset, onnx.Float, trial%2 == 1, uint64(trial))
					c.build(g)
					if err := sameAsRun(g, c.open == "" && !g.Symbolic); err != nil {
						t.Errorf("opset %d, trial %d: %v", opset, trial, err)
					}
				}
			}
		})
	}
}

// sameAsRun compares inference with a run, for every value that a node of the main
// graph writes; exact demands that all dimensions be known.
func sameAsRun(g *gradtest.Gen, exact bool) error {
	if g.Err() != nil {
		return g.Err()
	}
	g.Fixed(nil, g.Signed) // the runtime's binding wants an input
	m := g.Model()
	vals, err := onnx.Infer(m)
	if err != nil {
		return err
	}
	if len(g.Outs) == 0 {
		return fmt.Errorf("the case has no output")
	}
	// Outputs of undeclared shape, or the runtime would check our word.
	out := m.Clone()
	for i, v := range g.Outs {
		name := fmt.Sprintf("y%d", i)
		out.Graph.Nodes = append(out.Graph.Nodes, &onnx.Node{Op: "Identity", Inputs: []string{v}, Outputs: []string{name}})
		o := &onnx.ValueInfo{Name: name, Type: onnx.Type{Elem: vals[v].Type}}
		if vals[v].Rank() == 0 { // the binding has to be told of scalars
			o.Type.HasShape = true
		}
		out.Graph.Outputs = append(out.Graph.Outputs, o)
	}
	res, err := gradtest.Run(out, g.Feeds)
	if err != nil {
		return err
	}
	for i, v := range g.Outs {
		if err := sameValue(g, vals[v], res[fmt.Sprintf("y%d", i)], exact); err != nil {
			w := g.Writer(v)
			return fmt.Errorf("%s of %v: %w", w.Label(), w.Inputs, err)
		}
	}
	return nil
}

func sameValue(g *gradtest.Gen, info *onnx.Info, y *ort.Tensor, exact bool) error {
	if info == nil || !info.Known {
		return fmt.Errorf("nothing is known; the run gives %v", y.Shape)
	}
	same := slices.EqualFunc(info.Shape, y.Shape, func(d onnx.Dim, n int64) bool {
		v, ok := d.Bind(g.Sizes).Const()
		return !ok && !exact || ok && v == n
	})
	if !same {
		return fmt.Errorf("inferred %s, the run gives %v", onnx.ShapeString(info.Shape), y.Shape)
	}
	values := gradtest.Float64s(y)
	if info.Ints != nil && len(info.Ints) != len(values) || info.Floats != nil && len(info.Floats) != len(values) {
		return fmt.Errorf("%d or %d elements inferred, the run gives %v", len(info.Ints), len(info.Floats), values)
	}
	for k, d := range info.Ints {
		if n, ok := d.Bind(g.Sizes).Const(); ok && float64(n) != values[k] {
			return fmt.Errorf("element %d inferred as %s, the run gives %v", k, d, values)
		}
	}
	for k, f := range info.Floats {
		if math.Abs(f-values[k]) > 1e-6*math.Abs(f) && !(math.IsNaN(f) && math.IsNaN(values[k])) {
			return fmt.Errorf("element %d inferred as %v, the run gives %v", k, f, values)
		}
	}
	return nil
}
