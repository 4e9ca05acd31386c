package rewrite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/onnx"
)

func load(t testing.TB, name string) *onnx.Model {
	t.Helper()
	m, err := onnx.Load(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// save writes m into a temporary folder and loads it from there.
func save(t testing.TB, m *onnx.Model, name string, o onnx.SaveOptions) *onnx.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := onnx.Save(m, path, o); err != nil {
		t.Fatal(err)
	}
	out, err := onnx.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func floats(t testing.TB, m *onnx.Model, name string) []float32 {
	t.Helper()
	w, err := m.Resolve(m.Graph.Initializer(name))
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.Floats()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// chain returns a model of nodes "op in,in -> out,out".
func chain(nodes ...string) *onnx.Model {
	g := &onnx.Graph{Name: "g", Inputs: []*onnx.ValueInfo{{Name: "x"}}, Outputs: []*onnx.ValueInfo{{Name: "y"}}}
	for _, s := range nodes {
		op, rest, _ := strings.Cut(s, " ")
		in, out, _ := strings.Cut(rest, " -> ")
		g.Nodes = append(g.Nodes, &onnx.Node{Op: op, Inputs: strings.Split(in, ","), Outputs: strings.Split(out, ",")})
	}
	return &onnx.Model{IRVersion: 10, Opsets: map[string]int64{"": 21}, Graph: g, Path: "m.onnx"}
}
