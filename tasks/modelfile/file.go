// Package modelfile works on ONNX files: it says what is in one and by what it can be
// differentiated, adds gradients to it, checks them, and writes the result.
//
//	f, err := modelfile.Open("energy.onnx")
//	...
//	doc, err := f.AddGradients(ctx, modelfile.GradOptions{Wrt: []string{"x"}, Out: "energy.grad.onnx"})
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

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// File is a model and the file it came from.
type File struct {
	*onnx.Model
	Bytes  int64
	SHA256 string
}

// Open reads and checks the model in a file. Errors: those of onnx.Load and onnx.Check.
func Open(path string) (*File, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, err
	}
	rewrite.Sort(m)
	if err := onnx.Check(m); err != nil {
		return nil, err
	}
	f := &File{Model: m}
	if f.SHA256, f.Bytes, err = hash(path); err != nil {
		return nil, err
	}
	return f, nil
}

// hash returns the sha256 of a file, in hex, and its size.
func hash(path string) (sum string, size int64, err error) {
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

// External is a file beside a model that holds weights.
type External struct {
	File    string `json:"file"` // as the model states it
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"` // of those tensors
	SHA256  string `json:"sha256,omitempty"`
	// Problem says why the file cannot be used, and so does Err.
	Problem string `json:"problem,omitempty"`
	Err     error  `json:"-"`
}

// External lists the files beside the model that hold weights, by name, and checks
// that every part of them that is named is there.
func (f *File) External() []External {
	var list []External
	for _, t := range tensors(f.Graph) {
		if t.External == nil {
			continue
		}
		i := slices.IndexFunc(list, func(e External) bool { return e.File == t.External.Location })
		if i < 0 {
			i = len(list)
			list = append(list, External{File: t.External.Location})
		}
		e := &list[i]
		e.Tensors++
		b, err := f.Data(t)
		e.Bytes += int64(len(b))
		if e.Err == nil && err != nil {
			e.Err, e.Problem = err, err.Error()
		}
	}
	slices.SortFunc(list, func(a, b External) int { return strings.Compare(a.File, b.File) })
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

// at is the path of a file that the model refers to.
func (f *File) at(location string) string { return filepath.Join(f.Dir, filepath.FromSlash(location)) }

// parameters counts the initialisers.
func (f *File) parameters() (p Parameters) {
	for _, t := range tensors(f.Graph) {
		n, err := t.Elements()
		if err != nil {
			continue // Check has refused it
		}
		p.Tensors++
		p.Count += n
		if t.Raw != nil {
			p.Bytes += int64(len(t.Raw))
		} else {
			p.Bytes += n * int64(t.Type.Size())
		}
	}
	return p
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
