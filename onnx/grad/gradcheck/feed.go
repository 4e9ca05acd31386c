package gradcheck

import (
	"fmt"
	"strings"

	"github.com/sbinet/npyio/npz"

	"github.com/gradhop/gradhop/onnx/ort"
)

// ReadFeed reads the arrays of a NumPy archive, for [Options.Feed]. Their names are those of
// inputs.
func ReadFeed(path string) (map[string]*ort.Tensor, error) {
	z, err := npz.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gradcheck: %s is not a NumPy archive: %w", path, err)
	}
	defer z.Close()
	out := map[string]*ort.Tensor{}
	for _, key := range z.Keys() {
		name := strings.TrimSuffix(key, ".npy")
		h := z.Header(key)
		if h == nil || h.Descr.Fortran {
			return nil, fmt.Errorf("gradcheck: %s: array %q is in column order or has no readable header; save it with numpy.ascontiguousarray", path, name)
		}
		t := &ort.Tensor{Shape: make([]int64, len(h.Descr.Shape))}
		for i, n := range h.Descr.Shape {
			t.Shape[i] = int64(n)
		}
		read := func(p any) error { return z.Read(key, p) }
		switch kind := strings.TrimLeft(h.Descr.Type, "<>|="); kind {
		case "f4":
			t.Data, err = elements[float32](read)
		case "f8":
			t.Data, err = elements[float64](read)
		case "i8":
			t.Data, err = elements[int64](read)
		case "i4":
			t.Data, err = elements[int32](read)
		case "u1":
			t.Data, err = elements[uint8](read)
		case "i1":
			t.Data, err = elements[int8](read)
		case "b1":
			t.Data, err = elements[bool](read)
		default:
			err = fmt.Errorf("its type is %s; use float32, float64, int8, uint8, int32, int64 or bool", h.Descr.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("gradcheck: %s: array %q: %w", path, name, err)
		}
		out[name] = t
	}
	return out, nil
}

func elements[T any](read func(any) error) ([]T, error) {
	var v []T
	err := read(&v)
	return v, err
}
