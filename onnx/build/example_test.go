package build_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// A model is built, saved, read again and run.
func ExampleBuilder() {
	m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "line"}}
	b, err := build.New(m, "line/", nil)
	if err != nil {
		log.Fatal(err)
	}
	x := b.Input("x", onnx.Float, shape.Sym("batch"), shape.D(2))
	w := b.Const(onnx.NewFloat("", []int64{2, 1}, []float32{2, -1}))
	y := b.Add(b.MatMul(x, w), b.Scalar(0.5, x))
	b.Output("y", y)
	if err := b.Err(); err != nil {
		log.Fatal(err)
	}
	dims, _ := b.Shape(y)
	fmt.Println("y has shape", shape.String(dims))

	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "line.onnx")
	if err := onnx.Save(m, path, onnx.SaveOptions{}); err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	session, err := ort.Open(context.Background(), file, []string{"x"}, []string{"y"}, ort.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	out := make([]*ort.Tensor, 1)
	in := []*ort.Tensor{{Shape: []int64{2, 2}, Data: []float32{1, 2, 3, 4}}}
	if err := session.Run(context.Background(), in, out); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].Shape, out[0].Data)
	// Output:
	// y has shape [batch, 1]
	// [2 1] [0.5 2.5]
}

// Check says what is wrong with a model, everything at once.
func ExampleCheck() {
	m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{
		Nodes: []*onnx.Node{
			{Op: "Add", Name: "sum", Inputs: []string{"x", "loop"}, Outputs: []string{"y"}},
			{Op: "Neg", Name: "minus", Inputs: []string{"y"}, Outputs: []string{"loop"}},
		},
		Inputs:  []*onnx.ValueInfo{{Name: "x", Type: onnx.Type{Elem: onnx.Float}}},
		Outputs: []*onnx.ValueInfo{{Name: "z", Type: onnx.Type{Elem: onnx.Float}}},
	}}
	err := onnx.Check(m)
	for _, p := range err.(*onnx.FormatError).Problems {
		fmt.Println(p)
	}
	// Output:
	// graph: the graph is cyclic: Add node "sum" -> Neg node "minus" -> Add node "sum"
	// graph as output: reads "z", which is never written
}

// Infer computes symbolic shapes.
func ExampleInfer() {
	m, err := onnx.Load("../testdata/branches.onnx")
	if err != nil {
		log.Fatal(err)
	}
	vals, err := shape.Infer(m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vals["h"].Type, shape.String(vals["h"].Shape))
	// Output:
	// float [2, 3]
}
