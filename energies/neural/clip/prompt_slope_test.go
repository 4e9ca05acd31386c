package clip

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
)

// TestEmbeddingGradIsSlope compares the gradient by the embeddings with differences of U
// between embeddings that no token has: rows of the table are moved, which the backward
// pass knows nothing of. The gradients of one target each have it as their mean.
func TestEmbeddingGradIsSlope(t *testing.T) {
	dir := "testdata/openai/combined-legacy-14"
	c, err := Open(Files{FS: os.DirFS(dir), Dir: dir, Text: "model.onnx"}, Options{Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	goal, other := make([]float32, c.Width()), make([]float32, c.Width())
	for k := range goal {
		goal[k] = float32(math.Pow(-1, float64(k%3))) / float32(math.Sqrt(float64(len(goal))))
	}
	other[2] = 1
	e, err := c.Prompt(Text{IDs: []int32{58, 4, 5, 6, 59}, Blanks: []int{1, 3}, Tokens: []int32{9, 21, 33, 45}}, Targets{Vectors: [][]float32{goal, other}})
	if err != nil {
		t.Fatal(err)
	}
	x := energies.Batch{Space: e.Space(), Codes: []int32{2, 1}} // each value at one site
	u, g := make([]float64, 1), make([]float32, 2*e.Width())
	if err := e.EmbeddingGrad(t.Context(), u, g, x, nil); err != nil {
		t.Fatal(err)
	}
	at := func(site, k int, step float64) float64 {
		rows := slices.Clone(e.table)
		defer func() { e.table = rows }()
		e.table = slices.Clone(rows)
		e.table[int(x.Codes[site])*e.Width()+k] += float32(step)
		u := make([]float64, 1)
		if err := e.EmbeddingGrad(t.Context(), u, make([]float32, len(g)), x, nil); err != nil {
			t.Fatal(err)
		}
		return u[0]
	}
	top := 0.0
	for _, v := range g {
		top = max(top, math.Abs(float64(v)))
	}
	mean := make([]float64, len(g))
	for j := range int32(2) {
		one := make([]float32, len(g))
		if err := e.EmbeddingGrad(t.Context(), make([]float64, 1), one, x, [][]int32{{j}}); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(one, g) {
			t.Errorf("target %d alone has the gradient of both", j)
		}
		for k, v := range one {
			mean[k] += float64(v) / 2
		}
	}
	for k, v := range mean {
		if math.Abs(v-float64(g[k])) > 1e-6*top {
			t.Errorf("number %d: the mean over single targets is %g, with both %g", k, v, g[k])
		}
	}
	const h = 1.0 / 32
	for site := range 2 {
		for k := range e.Width() {
			slope := (8*(at(site, k, h)-at(site, k, -h)) - (at(site, k, 2*h) - at(site, k, -2*h))) / (12 * h)
			if got := float64(g[site*e.Width()+k]); math.Abs(got-slope) > 1e-3*top {
				t.Errorf("site %d, number %d: the gradient is %.6f, the slope %.6f", site, k, got, slope)
			}
		}
	}
}
