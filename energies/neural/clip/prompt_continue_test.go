package clip

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
)

// poolFiles are the text towers of testdata, in the form of every exporter.
var poolFiles = []string{
	"hugging/combined-legacy-14/model.onnx", "hugging/fixed-dynamo-18/text_model.onnx", "hugging/positions-dynamo-20/text_model.onnx",
	"hugging/split-dynamo-18/text_model.onnx", "hugging-half/float16/text_model.onnx", "hugging-half/float16-weights/text_model.onnx",
	"openai/combined-legacy-14/model.onnx", "openai/split-dynamo-18/text_model.onnx",
}

// TestBeginningIsKept: the tower of every exporter is continued behind what stands before
// the first blank, and gives what the whole tower gives. Keys and values of each layer are kept,
// and nothing behind the end of the text is computed.
func TestBeginningIsKept(t *testing.T) {
	for _, path := range poolFiles {
		c := poolCLIP(t, path)
		live, err := c.text.continued()
		if err != nil || live == nil {
			t.Errorf("%s: no continued tower: %v", path, err)
			continue
		}
		layers := 2
		if strings.HasPrefix(path, "openai") {
			layers = 1
		}
		if len(live.kept) != 2*layers {
			t.Errorf("%s: %d values are kept of %d layers", path, len(live.kept), layers)
		}
		if p := prefixOf(t, compareBeginning(t, path, c, text{}, true)); p != nil && (p.early != 2 || p.late != 5) {
			t.Errorf("%s: %d positions are kept and %d computed, want 2 and 5", path, p.early, p.late)
		}
		compareBeginning(t, path+", behind other words", c, text{ids: []int32{58, 11, 3, 9, 5, 31, 59}}, true)
	}
}

// TestBeginningIsComputed: where what stands before the first blank could depend on what
// follows, or nothing does, all is computed in every run.
func TestBeginningIsComputed(t *testing.T) {
	const file = "openai/split-dynamo-18/text_model.onnx"
	for name, x := range map[string]text{
		"a blank first":             {blanks: []int{0, 4}},
		"an end among the words":    {ids: []int32{58, 59, 4, 9, 5, 31, 59}},
		"an end before a blank":     {ids: []int32{58, 7, 4, 59, 5, 31, 59}, kept: true},
		"words behind the end's id": {ids: []int32{58, 7, 4, 9, 5, 31, 50}},
		"tokens behind the end's":   {ids: []int32{8, 7, 4, 9, 5, 31, 40}},
	} {
		compareBeginning(t, name, poolCLIP(t, file), x, x.kept)
	}
	for name, c := range map[string]struct {
		row, column int
		kept        bool
	}{
		"a word sees a blank":          {1, 2, false},
		"a word sees a word":           {0, 1, true},
		"a blank sees what follows":    {3, 5, true},
		"a blank sees behind the end":  {3, 8, false},
		"what is behind the end looks": {8, 9, true},
	} {
		clip := poolCLIP(t, file)
		at := slices.IndexFunc(clip.text.model.Graph.Initializers, func(x *onnx.Tensor) bool { return slices.Equal(x.Dims, []int64{1, 1, 10, 10}) })
		mask := clip.text.model.Graph.Initializers[at]
		numbers, err := mask.Floats()
		if err != nil {
			t.Fatal(err)
		}
		numbers[10*c.row+c.column] = -3
		clip.text.model.Graph.Initializers[at] = onnx.NewFloat(mask.Name, mask.Dims, numbers)
		compareBeginning(t, name, clip, text{}, c.kept)
	}
}

// text is one of compareBeginning's; zero fields mean those of most tests.
type text struct {
	ids    []int32
	blanks []int
	kept   bool
}

// compareBeginning evaluates a prompt with what stands before its first blank kept, and
// without.
func compareBeginning(t *testing.T, name string, c *Model, x text, kept bool) *Prompt {
	t.Helper()
	if x.ids == nil {
		x.ids = []int32{58, 7, 4, 9, 5, 31, 59}
	}
	if x.blanks == nil {
		x.blanks = []int{2, 4}
	}
	goal := make([]float32, c.Width())
	for k := range goal {
		goal[k] = float32(math.Pow(-1, float64(k%3))) / float32(math.Sqrt(float64(len(goal))))
	}
	evaluate := func(whole bool) (*Prompt, []float64, []float32) {
		e, err := c.Prompt(Text{IDs: x.ids, Blanks: x.blanks, Tokens: []int32{9, 21, 33, 45}}, Targets{Vectors: [][]float32{goal}})
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			e.prefix.Get(t.Context(), struct{}{}, func() (*prefixCache, error) { return nil, nil })
		}
		batch := energies.Batch{Space: e.Space(), Codes: []int32{2, 1, 0, 3, 1, 1}}
		u, g := make([]float64, 3), make([]float32, 6*e.Width())
		if err := e.EmbeddingGrad(t.Context(), u, g, batch, nil); err != nil {
			t.Fatal(name, err)
		}
		if p := prefixOf(t, e); (p != nil) != (kept && !whole) {
			t.Errorf("%s: the beginning is kept: %v", name, p != nil)
		}
		return e, u, g
	}
	e, u, g := evaluate(false)
	_, wantU, wantG := evaluate(true)
	top := 0.0
	for _, v := range wantG {
		top = max(top, math.Abs(float64(v)))
	}
	for k := range u {
		if !(math.Abs(u[k]-wantU[k]) < 1e-6) {
			t.Errorf("%s: U is %.8f, %.8f by the whole tower", name, u[k], wantU[k])
		}
	}
	for k := range g {
		if !(math.Abs(float64(g[k]-wantG[k])) <= 2e-6*top) {
			t.Errorf("%s: gradient %d is %.8f, %.8f by the whole tower", name, k, g[k], wantG[k])
		}
	}
	return e
}

// prefixOf returns what a prompt caches.
func prefixOf(t *testing.T, e *Prompt) *prefixCache {
	t.Helper()
	p, err := e.prefixOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPrefixInputsAreBounded: inputs are kept for one batch size, the last, and a return to
// an earlier size gives the results it gave before.
func TestPrefixInputsAreBounded(t *testing.T) {
	e := compareBeginning(t, "openai", poolCLIP(t, "openai/split-dynamo-18/text_model.onnx"), text{}, true)
	var first []float64
	for _, chains := range []int{5, 2, 9, 5} {
		u, g := make([]float64, chains), make([]float32, 2*chains*e.Width())
		if err := e.EmbeddingGrad(t.Context(), u, g, energies.NewBatch(e.Space(), chains), nil); err != nil {
			t.Fatal(err)
		}
		if p := prefixOf(t, e); p.texts != chains || len(p.inputs) != len(p.kept)+2 {
			t.Errorf("after a batch of %d: %d inputs for %d texts", chains, len(p.inputs), p.texts)
		}
		if chains == 5 && first == nil {
			first = u
		} else if chains == 5 && !slices.Equal(u, first) {
			t.Errorf("U of a batch of 5 was %v and is %v", first, u)
		}
	}
}
