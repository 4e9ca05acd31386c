package gradcheck

import (
	"context"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Double turns m into float64 with what the runtime lacks written by other operators.
func Double(m *onnx.Model, o ort.Options) error {
	c := &checker{ctx: context.Background(), o: Options{Runtime: o}}
	return c.double(m)
}

// Written are the operators that are written by others.
func Written() []string {
	var ops []string
	for op := range written {
		ops = append(ops, op)
	}
	return ops
}
