package clip_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/clip"
	"github.com/gradhop/gradhop/energies/neural/internal/neuraltest"
	"github.com/gradhop/gradhop/onnx"
)

// loadTower loads a model of the tests' folder and changes it.
func loadTower(t *testing.T, file string, change func(*onnx.Graph)) *onnx.Model {
	t.Helper()
	m, err := onnx.Load(filepath.Join(clipDir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(m.Graph)
	}
	return m
}

// renameOutput gives the output of a graph another name.
func renameOutput(to string) func(*onnx.Graph) {
	return func(g *onnx.Graph) {
		from := g.Outputs[0].Name
		g.Outputs[0].Name = to
		for _, n := range g.Nodes {
			for i, v := range n.Outputs {
				if v == from {
					n.Outputs[i] = to
				}
			}
		}
	}
}

// wantError tests the type and the text of an error.
func wantError[T error](t *testing.T, err error, says ...string) (e T) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want %T", err, err, e)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error does not say %q: %v", s, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has more than one line: %v", err)
	}
	return e
}

// TestNoVisionTower: texts work, pictures are refused.
func TestNoVisionTower(t *testing.T) {
	r := clipReferences(t, clipDir)["hugging"]
	f := r.files(t, "split-dynamo-18")
	f.Vision = ""
	c := openCLIP(t, f, clip.Options{})
	if c.HasVision() {
		t.Error("there is a vision tower")
	}
	_, err := c.EncodeImages(t.Context(), r.Pixels, r.Side, r.Side)
	wantError[*neural.ModelError](t, err, "no vision tower", "vision_model.onnx", "text targets")
	goal, err := c.EncodeText(t.Context(), r.Texts[:1])
	if err != nil {
		t.Fatal(err)
	}
	p := r.Prompts[0]
	e, err := c.Prompt(clip.Text{IDs: p.IDs, Blanks: p.Blanks, Tokens: p.Tokens}, clip.Targets{Vectors: goal})
	if err != nil {
		t.Fatal(err)
	}
	neuraltest.Evaluate(t, e.LogDensityTilt, energies.Batch{Space: e.Space(), Codes: p.States[0]})
}

func TestNoTextTower(t *testing.T) {
	f := clipReferences(t, clipDir)["hugging"].files(t, "split-dynamo-18")
	f.Text = ""
	_, err := clip.Open(f, clip.Options{})
	wantError[*neural.ModelError](t, err, "no text tower", "text_model.onnx")
	_, err = clip.New(nil, nil, clip.Options{})
	wantError[*neural.ModelError](t, err, "no text tower")
}

// TestWidthsDiffer: the tower of a text-only table has vectors of 4 numbers.
func TestWidthsDiffer(t *testing.T) {
	_, err := clip.New(loadTower(t, "bad/table.onnx", nil), loadTower(t, "hugging/split-dynamo-18/vision_model.onnx", nil), clip.Options{})
	wantError[*neural.ModelError](t, err, "table.onnx", "vision_model.onnx", "have 4 numbers", "have 12", "projection")
}

func TestNoProjection(t *testing.T) {
	_, err := clip.New(loadTower(t, "bad/table.onnx", renameOutput("pooler_output")), nil, clip.Options{})
	wantError[*neural.ModelError](t, err, "table.onnx", "pooler_output", "text_embeds", "CLIPTextModelWithProjection")
	vision := loadTower(t, "hugging/split-dynamo-18/vision_model.onnx", renameOutput("last_hidden_state"))
	_, err = clip.New(loadTower(t, "hugging/split-dynamo-18/text_model.onnx", nil), vision, clip.Options{})
	wantError[*neural.ModelError](t, err, "vision_model.onnx", "last_hidden_state", "image_embeds", "CLIPVisionModelWithProjection")
}

// naFlex gives a vision tower the inputs of a SigLIP 2 NaFlex: the size of each image in patches, too.
func naFlex(g *onnx.Graph) {
	shapes := *g.Inputs[0]
	shapes.Name = "spatial_shapes"
	for _, n := range g.Nodes {
		for i, v := range n.Inputs {
			if v == g.Inputs[0].Name {
				n.Inputs[i] = "patches"
			}
		}
	}
	g.Nodes = append(g.Nodes, &onnx.Node{Op: "Add", Inputs: []string{g.Inputs[0].Name, shapes.Name}, Outputs: []string{"patches"}})
	g.Inputs = append(g.Inputs, &shapes)
}

// TestNotCLIP: other models and other interfaces, each with its reason.
func TestNotCLIP(t *testing.T) {
	good := func() *onnx.Model { return loadTower(t, "bad/table.onnx", nil) }
	elem := func(k onnx.DataType) func(*onnx.Graph) {
		return func(g *onnx.Graph) { g.Inputs[0].Type.Elem = k }
	}
	dims := func(n int) func(*onnx.Graph) {
		return func(g *onnx.Graph) { g.Inputs[0].Type.Shape = g.Inputs[0].Type.Shape[:n] }
	}
	const split = "hugging/split-dynamo-18/"
	for name, c := range map[string]struct {
		text, vision *onnx.Model
		want         string
	}{
		"a language model":     {loadTower(t, "../../mlm/testdata/bert/dynamo-18/model.onnx", nil), nil, "no output called text_embeds"},
		"pictures as text":     {loadTower(t, split+"vision_model.onnx", nil), nil, "no output called text_embeds"},
		"text as pictures":     {good(), good(), "no output called image_embeds"},
		"another input":        {loadTower(t, split+"vision_model.onnx", renameOutput("text_embeds")), nil, `"pixel_values", which is none of`},
		"floats as ids":        {loadTower(t, "bad/table.onnx", elem(onnx.Float)), nil, "integers are wanted"},
		"ids of one dimension": {loadTower(t, "bad/table.onnx", dims(1)), nil, "two are wanted"},
		"one-hot ids":          {loadTower(t, "bad/one-hot.onnx", nil), nil, "table of token embeddings"},
		"no pixel values":      {good(), loadTower(t, "bad/table.onnx", renameOutput("image_embeds")), "no input called pixel_values"},
		"integer pixels":       {good(), loadTower(t, split+"vision_model.onnx", elem(onnx.Int64)), "floats are wanted"},
		"one colour":           {good(), loadTower(t, split+"vision_model.onnx", func(g *onnx.Graph) { g.Inputs[0].Type.Shape[1].Value = 1 }), "3 are wanted"},
		"flat pixels":          {good(), loadTower(t, split+"vision_model.onnx", dims(2)), "height and width"},
		"NaFlex":               {good(), loadTower(t, split+"vision_model.onnx", naFlex), "NaFlex (input spatial_shapes) is not supported yet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clip.New(c.text, c.vision, clip.Options{})
			wantError[*neural.ModelError](t, err, c.want, "the model has inputs")
		})
	}
}

func TestTokensOutsideVocabulary(t *testing.T) {
	r, c := clipCase(t, "hugging", "split-dynamo-18", clip.Options{})
	p, goal := r.Prompts[0], vectors(r.Images, r.Width)
	for _, id := range []int32{-1, int32(r.Vocabulary)} {
		_, err := c.EncodeText(t.Context(), [][]int32{{58, id, 59}})
		wantError[*energies.DefinitionError](t, err, "vocabulary of 60", "tokenizer")
		ids := slices.Clone(p.IDs)
		ids[2] = id // not a blank
		_, err = c.Prompt(clip.Text{IDs: ids, Blanks: p.Blanks, Tokens: p.Tokens}, clip.Targets{Vectors: goal})
		wantError[*energies.DefinitionError](t, err)
		_, err = c.Prompt(clip.Text{IDs: p.IDs, Blanks: p.Blanks, Tokens: []int32{3, id}}, clip.Targets{Vectors: goal})
		wantError[*energies.DefinitionError](t, err)
		ids[2], ids[p.Blanks[0]] = p.IDs[2], id // what stands at a blank does not matter
		if _, err = c.Prompt(clip.Text{IDs: ids, Blanks: p.Blanks, Tokens: p.Tokens}, clip.Targets{Vectors: goal}); err != nil {
			t.Error(err)
		}
	}
}

// TestTooLong: the context ends where the table of positions does, the file is fixed, or
// the configuration says.
func TestTooLong(t *testing.T) {
	families := clipReferences(t, clipDir)
	for name, c := range map[string]struct {
		family, model string
		max           int
		option        int
	}{
		"positions": {"hugging", "combined-legacy-14", 14, 0}, "dynamo": {"hugging", "split-dynamo-18", 14, 0},
		"fixed": {"hugging", "fixed-dynamo-18", 7, 0}, "openai": {"openai", "split-dynamo-18", 10, 0}, "option": {"hugging", "split-dynamo-18", 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := families[c.family]
			model := openCLIP(t, r.files(t, c.model), clip.Options{MaxLength: c.option})
			if model.MaxLength() != c.max {
				t.Fatalf("the longest text is %d, want %d", model.MaxLength(), c.max)
			}
			long := slices.Repeat([]int32{3}, c.max+1)
			long[0], long[c.max] = int32(r.Vocabulary-2), int32(r.Vocabulary-1)
			_, err := model.EncodeText(t.Context(), [][]int32{long})
			wantError[*energies.DefinitionError](t, err, fmt.Sprintf("%d tokens", c.max+1), fmt.Sprintf("at most %d tokens", c.max))
			_, err = model.Prompt(clip.Text{IDs: long, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: vectors(r.Images, r.Width)})
			wantError[*energies.DefinitionError](t, err)
			if _, err := model.EncodeText(t.Context(), [][]int32{long[1:]}); err != nil {
				t.Errorf("a text of %d tokens: %v", c.max, err)
			}
		})
	}
}

// TestConfigLength: config.json bounds the length where the graph does not tell.
func TestConfigLength(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(clipDir, "bad", "table.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config string
		max    int
	}{
		"none": {"", 0}, "text": {`{"text_config": {"max_position_embeddings": 9}}`, 9}, "tower": {`{"max_position_embeddings": 8}`, 8},
		"null": {`{"text_config": null}`, 0}, "negative": {`{"max_position_embeddings": -3}`, 0},
	} {
		fsys := fstest.MapFS{"onnx/text_model.onnx": {Data: data}}
		if c.config != "" {
			fsys["config.json"] = &fstest.MapFile{Data: []byte(c.config)}
		}
		model, err := clip.Open(clip.Files{FS: fsys, Text: "onnx/text_model.onnx"}, clip.Options{})
		if err != nil || model.MaxLength() != c.max {
			t.Errorf("%s: %v, %v; want %d", name, model, err, c.max)
		}
	}
	fsys := fstest.MapFS{"text_model.onnx": {Data: data}, "config.json": {Data: []byte("{")}}
	if _, err := clip.Open(clip.Files{FS: fsys, Text: "text_model.onnx"}, clip.Options{}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("a broken configuration: %v", err)
	}
}

func TestPicturesOfAnotherSize(t *testing.T) {
	r, c := clipCase(t, "hugging", "split-dynamo-18", clip.Options{})
	_, err := c.EncodeImages(t.Context(), make([]float32, 3*24*24), 24, 24)
	wantError[*energies.DefinitionError](t, err, "24x24", "16x16", "vision_model.onnx")
	_, err = c.EncodeImages(t.Context(), r.Pixels[1:], r.Side, r.Side)
	wantError[*energies.DefinitionError](t, err, "numbers")
	_, err = c.EncodeImages(t.Context(), nil, 0, 0)
	wantError[*energies.DefinitionError](t, err)
}

func TestWrongPrompt(t *testing.T) {
	r, c := clipCase(t, "hugging", "split-dynamo-18", clip.Options{})
	unit := vectors(r.Images, r.Width)
	ids := []int32{58, 1, 2, 59}
	nan := math.NaN()
	for name, p := range map[string]struct {
		text    clip.Text
		targets clip.Targets
	}{
		"no blank":        {clip.Text{IDs: ids, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit}},
		"blank at end":    {clip.Text{IDs: ids, Blanks: []int{3}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit}},
		"blanks swapped":  {clip.Text{IDs: ids, Blanks: []int{2, 1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit}},
		"end of text":     {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 59}}, clip.Targets{Vectors: unit}},
		"no target":       {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{}},
		"short target":    {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: [][]float32{{1}}}},
		"target not unit": {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: [][]float32{make([]float32, 12)}}},
		"weights":         {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit, Weights: []float64{1}}},
		"weight":          {clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit, Weights: []float64{1, nan, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Prompt(p.text, p.targets)
			wantError[*energies.DefinitionError](t, err)
		})
	}
	for _, text := range []clip.Text{
		{IDs: ids, Blanks: []int{1}, Tokens: []int32{1}},
		{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}, Allowed: [][]int32{{}}},
	} {
		_, err := c.Prompt(text, clip.Targets{Vectors: unit})
		wantError[*energies.SpaceError](t, err)
	}
	e, err := c.Prompt(clip.Text{IDs: ids, Blanks: []int{1}, Tokens: []int32{1, 2}}, clip.Targets{Vectors: unit})
	if err != nil {
		t.Fatal(err)
	}
	x := energies.NewBatch(e.Space(), 1)
	for _, batch := range [][][]int32{{}, {{}}, {{3}}, {{-1}}} {
		wantError[*energies.DefinitionError](t, e.EstimateGrad(t.Context(), make([]float64, 1), make([]float32, 2), x, batch))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := clip.New(loadTower(t, "bad/table.onnx", nil), nil, clip.Options{MaxLength: -1}); err == nil {
		t.Error("a negative length is taken")
	}
}
