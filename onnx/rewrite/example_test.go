package rewrite_test

import (
	"fmt"
	"log"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// A model with functions and an If is written out, brought to operator set 18 and
// simplified.
func ExampleUpgrade() {
	m, err := onnx.Load("../testdata/local.onnx")
	if err != nil {
		log.Fatal(err)
	}
	if err := rewrite.Inline(m); err != nil {
		log.Fatal(err)
	}
	rewrite.FoldIf(m)
	if err := rewrite.Upgrade(m, 18); err != nil {
		log.Fatal(err)
	}
	if err := rewrite.Simplify(m); err != nil {
		log.Fatal(err)
	}
	for _, n := range m.Graph.Nodes {
		fmt.Println(n.Label(), n.Float("alpha", 0))
	}
	fmt.Println("operator set", m.Opset()) // it was newer: nothing to do
	// Output:
	// LeakyRelu node that writes "y" 0.25
	// operator set 21
}

// An operator's history: which sets defined it, and what a given set reads.
func ExampleOperator() {
	resize, _ := onnx.Operator("", "Resize")
	since, _ := resize.At(17)
	fmt.Println(resize.Since, since)
	// Output:
	// [10 11 13 18 19] 13
}
