package infill

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// wrongDraft is a folder with the tiny model whose weights of two dimensions are multiplied by a
// factor, and with a changed vocabulary.
func wrongDraft(t *testing.T, factor float32, change func(vocabulary string) string) string {
	t.Helper()
	dir := t.TempDir()
	m, err := onnx.Load("../../energies/neural/mlm/testdata/bert/legacy-17-sdpa/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range m.Graph.Initializers {
		if w.Type != onnx.Float || len(w.Dims) != 2 {
			continue
		}
		x, err := w.Floats()
		if err != nil {
			t.Fatal(err)
		}
		x = slices.Clone(x)
		for i := range x {
			x[i] *= factor
		}
		m.Graph.Initializers[k] = onnx.NewFloat(w.Name, w.Dims, x)
	}
	if err := onnx.Save(m, filepath.Join(dir, "model.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vocab.txt", "config.json"} {
		b, err := os.ReadFile(filepath.Join("testdata/tiny", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "vocab.txt" && change != nil {
			b = []byte(change(string(b)))
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDraftRefused: options that cannot be, and models that read other tokens.
func TestDraftRefused(t *testing.T) {
	m := load(t)
	swapped := wrongDraft(t, 1, func(v string) string { return strings.NewReplacer("cat\n", "dog\n", "dog\n", "cat\n").Replace(v) })
	fewer := wrongDraft(t, 1, func(v string) string { return strings.Replace(v, "cat\n", "", 1) })
	for want, change := range map[string]func(*DrawOptions){
		"draft: cpu: the model itself runs on cpu":                 func(o *DrawOptions) { o.Draft = "cpu" },
		"draft: openvino,f8: want a precision":                     func(o *DrawOptions) { o.Draft = "openvino,f8" },
		"the model has none; name another draft":                   func(o *DrawOptions) { o.Draft = "int8" },
		"sampler: two-stage: it needs a draft":                     func(o *DrawOptions) { o.Draft, o.Sampler = "", "two-stage" },
		"must be a reversible sampler: dlmc, dmala, exchange, gwg": func(o *DrawOptions) { o.Draft, o.Sampler = swapped, "gibbs-model" },
		`to tiny: give a draft with the tokenizer`:                 func(o *DrawOptions) { o.Draft = swapped },
		"has a vocabulary of 79 tokens, tiny has 80":               func(o *DrawOptions) { o.Draft = fewer },
		"it is not a folder":                                       func(o *DrawOptions) { o.Draft = "./absent" },
		`draft-steps "0.5"`:                                        func(o *DrawOptions) { o.Draft, o.Options = swapped, samplers.Settings{"draft-steps": "0.5"} },
	} {
		o := Options{Draws: 8, Sampling: DefaultDraws(8)}
		change(&o.Sampling)
		if _, err := m.Fill(t.Context(), "the [MASK] sat", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is more than a line", err)
		}
	}
}

// TestDraftRecord: results name the draft and what each stage rejects, and a run is not continued
// with another draft or without one.
func TestDraftRecord(t *testing.T) {
	m, err := tinyWith(t, mlm.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Draws: 16, Sampling: DefaultDraws(16), Folder: filepath.Join(t.TempDir(), "run"), Version: "test"}
	o.Sampling.Draft, o.Sampling.Options = wrongDraft(t, 0.8, nil), samplers.Settings{"draft-steps": "2"}
	d, err := m.Fill(t.Context(), "the [MASK] [MASK] on", o)
	if err != nil {
		t.Fatal(err)
	}
	s, g := d.Settings.Sampling, d.Diagnostics
	if !strings.Contains(s.Draft, " sha256:") || s.Sampler != "two-stage" || s.Options["inner"] != "mwg" || s.Options["draft-steps"] != "2" {
		t.Errorf("settings %+v", s)
	}
	if g.DraftRejected == nil || !(*g.DraftRejected > 0 && *g.DraftRejected < 1) || !(*g.ModelRejected > 0 && *g.ModelRejected < 1) {
		t.Errorf("rejected %v and %v", g.DraftRejected, g.ModelRejected)
	}
	if g.Steps != minSweeps { // a step of two draft steps is a sweep of two blanks
		t.Errorf("%d steps", g.Steps)
	}
	saved, err := LoadSaved(o.Folder)
	if err != nil {
		t.Fatal(err)
	}
	again := Options{Words: saved.Words, Draws: saved.Draws, Sampling: saved.Sampling, Folder: o.Folder, Resume: true, Version: "test"}
	if e, err := m.Fill(t.Context(), saved.Text, again); err != nil || *e.Diagnostics.ModelRejected != *g.ModelRejected {
		t.Errorf("the same draft: %v", err)
	}
	for _, other := range []string{"", wrongDraft(t, 0.7, nil)} {
		if again.Sampling.Draft = other; other == "" {
			again.Sampling.Options = nil
		}
		if _, err := m.Fill(t.Context(), saved.Text, again); !errors.As(err, new(*store.MismatchError)) {
			t.Errorf("draft %q: %v", other, err)
		}
	}
}

// TestBuiltInDraft: int8 rounds the built-in model, whose file stores weights as integers with scales.
func TestBuiltInDraft(t *testing.T) {
	src, err := models.Open(t.Context(), models.Default, hub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(src, mlm.Options{Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.Text("the cat sat on the [MASK]", TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.draft(t.Context(), "int8")
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.Text(p.Text, p.words)
	if err != nil {
		t.Fatal(err)
	}
	u := [2]float64{}
	for k, p := range []*Problem{p, q} {
		x := energies.NewBatch(p.Energy.Space(), 1)
		x.Codes[0] = p.Energy.Space().Allowed[0][0]
		if err := p.Energy.LogDensity(t.Context(), u[k:k+1], x); err != nil {
			t.Fatal(err)
		}
	}
	if d := math.Abs(u[0] - u[1]); d == 0 || d > 3 {
		t.Errorf("U is %g, of the draft %g", u[0], u[1])
	}
}
