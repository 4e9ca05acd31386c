package main

import (
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// testData returns the inputs in the folder test_data_set_0 beside a model, as the standard's own tests have them, or
// nil where there is none or one of a type that is not fed.
func testData(path string, m *onnx.Model) map[string]*ort.Tensor {
	feed := map[string]*ort.Tensor{}
	for i, in := range m.Graph.Inputs {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "test_data_set_0", fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return nil
		}
		// A tensor is read as the constant of a model.
		graph := protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), b)
		stored, err := onnx.Decode(protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), graph))
		if err != nil || len(stored.Graph.Initializers) != 1 {
			return nil
		}
		if feed[in.Name] = tensorOf(stored.Graph.Initializers[0]); feed[in.Name] == nil {
			return nil
		}
	}
	return feed
}

// tensorOf returns a constant as an input, or nil.
func tensorOf(t *onnx.Tensor) *ort.Tensor {
	out := &ort.Tensor{Shape: t.Dims}
	var err error
	switch t.Type {
	case onnx.Float:
		out.Data, err = t.Floats()
	case onnx.Double:
		out.Data, err = t.Float64s()
	case onnx.Int64:
		out.Data, err = t.Int64s()
	case onnx.Int32, onnx.Bool:
		var v []int64
		v, err = t.Int64s()
		small, truth := make([]int32, len(v)), make([]bool, len(v))
		for i, x := range v {
			small[i], truth[i] = int32(x), x != 0
		}
		if out.Data = small; t.Type == onnx.Bool {
			out.Data = truth
		}
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return out
}
