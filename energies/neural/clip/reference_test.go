package clip_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/clip"
	"github.com/gradhop/gradhop/energies/neural/internal/neuraltest"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

const clipDir = "testdata"

// clipReference is a file of values that scripts/reference/clip_reference.py computed by
// autograd in float64.
type clipReference struct {
	dir                              string
	Models                           []string
	Vocabulary, Longest, Side, Width int
	Pixels, Images                   neuraltest.Packed
	Texts                            [][]int32
	TextVectors                      neuraltest.Packed `json:"text_vectors"`
	Betas                            []float64
	Prompts                          []clipPrompt
}

type clipPrompt struct {
	IDs          []int32
	Blanks       []int
	Tokens       []int32
	Allowed      [][]int32
	States       [][]int32
	Weights      []float64
	U            []float64
	Grad, Slopes neuraltest.Packed   // [state, site, value], [state, site, embed]
	Tilts        []neuraltest.Packed // [beta][state, site, value]
}

// clipReferences returns the references of the folders below dir, by family.
func clipReferences(t testing.TB, dir string) map[string]*clipReference {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "reference.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference in %s: %v", dir, err)
	}
	all := map[string]*clipReference{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := &clipReference{dir: filepath.Dir(f)}
		if err := json.Unmarshal(data, r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[filepath.Base(r.dir)] = r
	}
	return all
}

// files are those of a model of the reference.
func (r *clipReference) files(t testing.TB, model string) clip.Files {
	t.Helper()
	dir := filepath.Join(r.dir, model)
	f := clip.Files{FS: os.DirFS(dir), Dir: dir, Text: "text_model.onnx", Vision: "vision_model.onnx"}
	for _, file := range []*string{&f.Text, &f.Vision} {
		_, err := fs.Stat(f.FS, *file)
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		case file == &f.Text:
			f.Text, f.Vision = "model.onnx", "model.onnx"
			return f
		default:
			*file = ""
		}
	}
	return f
}

func openCLIP(t testing.TB, f clip.Files, o clip.Options) *clip.Model {
	t.Helper()
	if o.Runtime.Threads == 0 {
		o.Runtime.Threads = 1
	}
	c, err := clip.Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, ort.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// vectors cuts rows of a number of elements out of a list.
func vectors(flat []float32, width int) [][]float32 {
	var rows [][]float32
	for lo := 0; lo < len(flat); lo += width {
		rows = append(rows, flat[lo:lo+width])
	}
	return rows
}

// energyOf returns the energy of a prompt with the reference's pictures as targets, and
// the batch of its states.
func (r *clipReference) energyOf(t testing.TB, c *clip.Model, p clipPrompt) (*clip.Prompt, energies.Batch) {
	t.Helper()
	text := clip.Text{IDs: p.IDs, Blanks: p.Blanks, Tokens: p.Tokens, Allowed: p.Allowed}
	e, err := c.Prompt(text, clip.Targets{Vectors: vectors(r.Images, r.Width), Weights: p.Weights})
	if err != nil {
		t.Fatal(err)
	}
	x := energies.Batch{Space: e.Space()}
	for _, s := range p.States {
		x.Codes = append(x.Codes, s...)
	}
	return e, x
}

// prompts are those that fit the model's context.
func (r *clipReference) prompts(c *clip.Model) []clipPrompt {
	var list []clipPrompt
	for _, p := range r.Prompts {
		if c.MaxLength() == 0 || len(p.IDs) <= c.MaxLength() {
			list = append(list, p)
		}
	}
	return list
}

// embeddingGrad evaluates an energy by the embeddings.
func embeddingGrad(t testing.TB, e *clip.Prompt, x energies.Batch) neuraltest.Product {
	t.Helper()
	p := neuraltest.Product{U: make([]float64, x.Chains()), Grad: make([]float32, len(x.Codes)*e.Width())}
	if err := e.EmbeddingGrad(context.Background(), p.U, p.Grad, x, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// compare tests all that a prompt computes against the reference.
func (r *clipReference) compare(t *testing.T, model string, limit float64) {
	c := openCLIP(t, r.files(t, model), clip.Options{})
	if c.Width() != r.Width || c.Vocabulary() != r.Vocabulary {
		t.Errorf("width %d and vocabulary %d, want %d and %d", c.Width(), c.Vocabulary(), r.Width, r.Vocabulary)
	}
	if fixed := model == "fixed-dynamo-18"; !fixed && c.MaxLength() != r.Longest {
		t.Errorf("the longest text is %d, want %d", c.MaxLength(), r.Longest)
	}
	worst := map[string]float64{}
	note := func(what string, d float64) {
		worst[what] = max(worst[what], d)
		if !(d <= limit) {
			t.Errorf("%s is off by %.1e; want %.0e", what, d, limit)
		}
	}
	r.compareVectors(t, c, note)
	for _, p := range r.prompts(c) {
		e, x := r.energyOf(t, c, p)
		alone := make([]float64, x.Chains())
		if err := e.LogDensity(context.Background(), alone, x); err != nil {
			t.Fatal(err)
		}
		full, tilt, slopes := neuraltest.Evaluate(t, e.LogDensityGrad, x), neuraltest.Evaluate(t, e.LogDensityTilt, x), embeddingGrad(t, e, x)
		for _, u := range [][]float64{alone, full.U, tilt.U, slopes.U} {
			note("U", neuraltest.Apart(u, p.U, 1))
		}
		note("the gradient", neuraltest.Apart(full.Grad, p.Grad, 1))
		note("the embedding gradient", neuraltest.Apart(slopes.Grad, p.Slopes, 1))
		for k, beta := range r.Betas {
			again := make([]float32, len(full.Grad))
			if err := temper(e, again, full.Grad, beta, x); err != nil {
				t.Fatal(err)
			}
			note("Tilt", neuraltest.Apart(again, p.Tilts[k], 1))
			if beta == 1 {
				note("the tilt", neuraltest.Apart(tilt.Grad, p.Tilts[k], 1))
			}
		}
	}
	t.Logf("relative errors: %v", worst)
}

// compareVectors tests the vectors of texts and pictures.
func (r *clipReference) compareVectors(t *testing.T, c *clip.Model, note func(string, float64)) {
	ctx := context.Background()
	var texts [][]int32
	var want []float32
	for k, v := range vectors(r.TextVectors, r.Width) {
		if c.MaxLength() == 0 || len(r.Texts[k]) <= c.MaxLength() {
			texts, want = append(texts, r.Texts[k]), append(want, v...)
		}
	}
	got, err := c.EncodeText(ctx, texts)
	if err != nil {
		t.Fatal(err)
	}
	var flat []float32
	for _, v := range got {
		flat = append(flat, v...)
	}
	note("text vectors", neuraltest.Apart(flat, want, 1))
	if !c.HasVision() {
		return
	}
	if got, err = c.EncodeImages(ctx, r.Pixels, r.Side, r.Side); err != nil {
		t.Fatal(err)
	}
	flat = flat[:0]
	for _, v := range got {
		flat = append(flat, v...)
	}
	note("image vectors", neuraltest.Apart(flat, r.Images, 1))
}

func TestCLIPReference(t *testing.T) {
	families := clipReferences(t, clipDir)
	for _, family := range []string{"hugging", "hugging-half", "hugging-quantised", "openai", "siglip"} {
		r := families[family]
		if r == nil {
			t.Fatalf("no reference of %s", family)
		}
		for _, model := range r.Models {
			t.Run(family+"/"+model, func(t *testing.T) { r.compare(t, model, 1e-5) })
		}
	}
}

// TestExternalCLIP compares models of any size with references that
// scripts/reference/test_clip_reference.py writes.
func TestExternalCLIP(t *testing.T) {
	dir := os.Getenv("GRADHOP_CLIP_REFERENCE")
	if dir == "" {
		t.Skip("GRADHOP_CLIP_REFERENCE is not set; scripts/reference/test_clip_reference.py sets it")
	}
	for family, r := range clipReferences(t, dir) {
		for _, model := range r.Models {
			t.Run(fmt.Sprintf("%s/%s", family, model), func(t *testing.T) { r.compare(t, model, 1e-4) })
		}
	}
}

// TestOtherNames: towers with the names of OpenCLIP, or any name where there is no other, give the
// vectors of the reference.
func TestOtherNames(t *testing.T) {
	r := clipReferences(t, clipDir)["openai"]
	f := r.files(t, "split-dynamo-18")
	towers := make([]*onnx.Model, 2)
	for k, names := range [][4]string{{f.Text, "input_ids", "text", "output"}, {f.Vision, "pixel_values", "image", "image_features"}} {
		m, err := onnx.Load(filepath.Join(f.Dir, names[0]))
		if err != nil {
			t.Fatal(err)
		}
		old := m.Graph.Outputs[0].Name
		m.Graph.Outputs[0].Name = names[3]
		m.Graph.Input(names[1]).Name = names[2]
		for _, n := range m.Graph.Nodes {
			for _, list := range [][]string{n.Inputs, n.Outputs} {
				for i, v := range list {
					switch v {
					case old:
						list[i] = names[3]
					case names[1]:
						list[i] = names[2]
					}
				}
			}
		}
		towers[k] = m
	}
	c, err := clip.New(towers[0], towers[1], clip.Options{Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.compareVectors(t, c, func(what string, d float64) {
		if !(d <= 1e-5) {
			t.Errorf("%s are off by %.1e", what, d)
		}
	})
}
