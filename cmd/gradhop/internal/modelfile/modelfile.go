// Package modelfile reads the ONNX files that commands are given.
package modelfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// File is a model and the file it came from.
type File struct {
	*onnx.Model
	Bytes  int64
	SHA256 string
}

// Open reads and checks the model in a file. One that is not there is an
// *app.Error with code 3.
func Open(path string) (*File, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, app.Classify(err)
	}
	rewrite.Sort(m)
	if err := onnx.Check(m); err != nil {
		return nil, app.Classify(err)
	}
	f := &File{Model: m}
	if f.SHA256, f.Bytes, err = Hash(path); err != nil {
		return nil, app.Classify(err)
	}
	return f, nil
}

// Hash returns the sha256 of a file, in hex, and its size.
func Hash(path string) (sum string, size int64, err error) {
	r, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	h := sha256.New()
	if size, err = io.Copy(h, r); err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// External is a file that holds weights of a model.
type External struct {
	Location string // as the model states it
	Tensors  int
	Bytes    int64 // of those tensors
	// Err says why the file cannot be used.
	Err error
}

// External lists the files beside the model that hold weights, by name, and checks
// that every part of them that is named is there.
func (f *File) External() []External {
	var list []External
	for _, t := range tensors(f.Graph) {
		if t.External == nil {
			continue
		}
		i := slices.IndexFunc(list, func(e External) bool { return e.Location == t.External.Location })
		if i < 0 {
			i = len(list)
			list = append(list, External{Location: t.External.Location})
		}
		e := &list[i]
		e.Tensors++
		b, err := f.Data(t)
		e.Bytes += int64(len(b))
		if e.Err == nil {
			e.Err = err
		}
	}
	slices.SortFunc(list, func(a, b External) int { return strings.Compare(a.Location, b.Location) })
	return list
}

// tensors returns the initialisers of g and of the graphs in it, and constants.
func tensors(g *onnx.Graph) []*onnx.Tensor {
	list := slices.Clone(g.Initializers)
	for _, n := range g.Nodes {
		for _, a := range n.Attrs {
			if a.T != nil {
				list = append(list, a.T)
			}
			list = append(list, a.Tensors...)
			for _, sub := range append([]*onnx.Graph{a.G}, a.Graphs...) {
				if sub != nil {
					list = append(list, tensors(sub)...)
				}
			}
		}
	}
	return list
}

// Parameters counts the elements of the initialisers and their bytes.
func (f *File) Parameters() (tensorCount int, elements, bytes int64) {
	for _, t := range tensors(f.Graph) {
		n, err := t.Elements()
		if err != nil {
			continue // Check has refused it
		}
		tensorCount++
		elements += n
		switch {
		case t.Raw != nil:
			bytes += int64(len(t.Raw))
		default:
			bytes += n * int64(t.Type.Size())
		}
	}
	return tensorCount, elements, bytes
}

// Shape returns the dimensions that a file states: numbers, names, or nil where
// nothing is known; false where not even their number is.
func Shape(t onnx.Type) (dims []any, known bool) {
	dims = []any{}
	for _, d := range t.Shape {
		switch {
		case d.Param != "":
			dims = append(dims, d.Param)
		case d.Value >= 0:
			dims = append(dims, d.Value)
		default:
			dims = append(dims, nil)
		}
	}
	return dims, t.HasShape
}

// ShapeString writes the dimensions of Shape on one line.
func ShapeString(t onnx.Type) string {
	dims, known := Shape(t)
	if !known {
		return "of unknown rank"
	}
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = "?"
		if d != nil {
			parts[i] = app.Plain(fmt.Sprint(d))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// TypeString names the element type of a value.
func TypeString(t onnx.Type) string {
	if t.Other != nil {
		return "not a tensor"
	}
	if t.Elem == onnx.Undefined {
		return "unknown"
	}
	return t.Elem.String()
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Same reports whether two paths are those of one file.
func Same(a, b string) bool {
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	if errA != nil || errB != nil {
		x, _ := filepath.Abs(a)
		y, _ := filepath.Abs(b)
		return x == y
	}
	return os.SameFile(sa, sb)
}
