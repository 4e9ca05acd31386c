package rewrite_test

import (
	"slices"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// TestPruneInputs: an input that only a branch of an If reads, at any depth, stays; so
// does one that is an output itself. A name that a branch binds itself is no read.
func TestPruneInputs(t *testing.T) {
	branch := func(nodes ...*onnx.Node) *onnx.Attribute {
		return &onnx.Attribute{Name: "then_branch", Type: onnx.AttrGraph, G: &onnx.Graph{Nodes: nodes}}
	}
	inner := &onnx.Node{Op: "If", Inputs: []string{"c"}, Outputs: []string{"p"}, Attrs: []*onnx.Attribute{branch(
		&onnx.Node{Op: "Neg", Inputs: []string{"deep"}, Outputs: []string{"q"}})}}
	g := &onnx.Graph{
		Nodes: []*onnx.Node{{Op: "If", Inputs: []string{"c"}, Outputs: []string{"y"}, Attrs: []*onnx.Attribute{branch(
			&onnx.Node{Op: "Exp", Inputs: []string{"read"}, Outputs: []string{"bound"}},
			&onnx.Node{Op: "Exp", Inputs: []string{"bound"}, Outputs: []string{"r"}}, inner)}}},
		Outputs: []*onnx.ValueInfo{{Name: "y"}, {Name: "passed"}},
	}
	for _, name := range []string{"c", "read", "deep", "bound", "unread", "passed"} {
		g.Inputs = append(g.Inputs, &onnx.ValueInfo{Name: name})
	}
	rewrite.PruneInputs(g)
	var left []string
	for _, v := range g.Inputs {
		left = append(left, v.Name)
	}
	if want := []string{"c", "read", "deep", "passed"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}
