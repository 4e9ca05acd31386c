package grad_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
)

// longChain is a model of n nodes: x is multiplied by weights, with a Tanh, a Constant and
// an Identity in between.
func longChain(n int) *onnx.Model {
	g := &onnx.Graph{Name: "g", Inputs: []*onnx.ValueInfo{input("x", onnx.Float, 4)}, Outputs: []*onnx.ValueInfo{input("y", onnx.Float, 4)}}
	in := "x"
	for i := range n / 4 {
		c, a, b, d := fmt.Sprintf("c%d", i), fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i), fmt.Sprintf("d%d", i)
		g.Nodes = append(g.Nodes,
			&onnx.Node{Op: "Constant", Outputs: []string{c}, Attrs: []*onnx.Attribute{onnx.TensorAttr("value", onnx.NewFloat("", []int64{1}, []float32{float32(i)}))}},
			&onnx.Node{Op: "Mul", Inputs: []string{in, c}, Outputs: []string{a}},
			&onnx.Node{Op: "Identity", Inputs: []string{a}, Outputs: []string{b}},
			&onnx.Node{Op: "Tanh", Inputs: []string{b}, Outputs: []string{d}})
		in = d
	}
	g.Nodes = append(g.Nodes, &onnx.Node{Op: "Neg", Inputs: []string{in}, Outputs: []string{"y"}})
	return &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: g}
}

// TestAppendIsLinear: eight times the nodes take about eight times the time.
func TestAppendIsLinear(t *testing.T) {
	took := func(n int) time.Duration {
		m := longChain(n)
		begin := time.Now()
		if _, err := grad.Append(m, grad.Options{Wrt: []string{"x"}, Reduce: grad.ReduceSum}); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	took(1000)
	small := min(took(2000), took(2000), took(2000))
	if large := took(16000); large > 24*small {
		t.Errorf("2,000 nodes take %v, 16,000 take %v", small, large)
	} else {
		t.Logf("2,000 nodes take %v, 16,000 take %v", small, large)
	}
}
