package gradtest

import (
	"context"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/internal/reference"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Feeds are the inputs of a run, by name.
type Feeds = reference.Feeds

// Open opens m on one thread, as it is written: to fuse its operators takes longer than all
// runs, and fused ones compute less exactly in double.
func Open(m *onnx.Model) (*reference.Program, error) {
	var outputs []string
	for _, v := range m.Graph.Outputs {
		outputs = append(outputs, v.Name)
	}
	return reference.Open(context.Background(), m, outputs, ort.Options{Threads: 1, Unoptimized: true})
}

// Run opens m, runs it once and closes it.
func Run(m *onnx.Model, f Feeds) (Feeds, error) {
	p, err := Open(m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(context.Background(), f)
}

// Tensor returns a tensor of the given type.
func Tensor(t onnx.DataType, shape []int64, v []float64) *ort.Tensor {
	return reference.Tensor(t, shape, v)
}
