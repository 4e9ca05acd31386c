// Package language loads masked language models for the tasks that use one: the energy and the
// tokenizer that belongs to it.
package language

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/energies/neural/text"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/tokenize/hf"
)

// Load reads the tokenizer and the model of src. It sets o.MaskID, and the runtime's name for the
// model unless it is given, and returns the options with them. No session is opened yet.
//
// Errors: *onnx.ArgumentError for an option, or a *neural.ModelError around those of packages hf,
// onnx and mlm.
func Load(src models.Model, o mlm.Options) (*hf.Tokenizer, *mlm.Model, mlm.Options, error) {
	fail := func(err error) (*hf.Tokenizer, *mlm.Model, mlm.Options, error) {
		return nil, nil, o, &neural.ModelError{Model: src.Name, Err: err}
	}
	tok, err := hf.Load(src.FS)
	if err != nil {
		return fail(err)
	}
	if causal(src) {
		return fail(ErrCausal)
	}
	if tok.Mask < 0 {
		return fail(errors.New("the tokenizer has no mask token"))
	}
	file, err := openFile(src)
	if err != nil {
		return fail(err)
	}
	if o.MaskID = tok.Mask; o.Runtime.Name == "" {
		o.Runtime.Name = src.Name
	}
	m, err := mlm.New(file, o)
	var option *onnx.ArgumentError
	if err != nil && !errors.As(err, &option) {
		return fail(err)
	}
	return tok, m, o, err
}

// ErrCausal is the error for a causal language model where a masked one is wanted.
var ErrCausal = errors.New("it is a causal language model, which scores texts but fills no blanks")

// config is what config.json says of a model.
type config struct {
	Architectures []string          `json:"architectures"`
	Labels        map[string]string `json:"id2label"`
	Problem       string            `json:"problem_type"`
}

// configOf reads the config.json of a model; what cannot be read is empty.
func configOf(src models.Model) (c config) {
	if data, err := fs.ReadFile(src.FS, "config.json"); err == nil {
		_ = json.Unmarshal(data, &c)
	}
	return c
}

// is says whether the name of an architecture ends so.
func (c config) is(ends ...string) bool {
	return slices.ContainsFunc(c.Architectures, func(a string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(a, end) })
	})
}

// causal says whether a model's config.json names a causal language model. Its tokenizer may have a mask token all the same.
func causal(src models.Model) bool {
	c := configOf(src)
	return c.is("ForCausalLM", "LMHeadModel") && !c.is("WithLMHeadModel") // XLM's, which is a masked one
}

// labelsOf returns the labels of a classifier in the order of its logits, and whether they do not exclude each other. found is
// false for another model.
func labelsOf(src models.Model) (labels []string, multi, found bool) {
	c := configOf(src)
	for k := range len(c.Labels) {
		labels = append(labels, c.Labels[strconv.Itoa(k)])
	}
	return labels, c.Problem == "multi_label_classification", c.is("ForSequenceClassification") && len(labels) > 0
}

// loadClassifier is [Load] for a classifier, whose energy is the log-probability of a label.
func loadClassifier(src models.Model, label int, multi bool, o text.Options) (*hf.Tokenizer, *text.Model, error) {
	return load(src, o, func(m *onnx.Model, o text.Options) (*text.Model, error) {
		return text.NewClassifier(m, label, multi, o)
	})
}

// LoadCausal is [Load] for a causal language model.
func LoadCausal(src models.Model, o text.Options) (*hf.Tokenizer, *text.Model, error) {
	return load(src, o, text.NewCausal)
}

func load(src models.Model, o text.Options, open func(*onnx.Model, text.Options) (*text.Model, error)) (*hf.Tokenizer, *text.Model, error) {
	fail := func(err error) (*hf.Tokenizer, *text.Model, error) {
		return nil, nil, &neural.ModelError{Model: src.Name, Err: err}
	}
	tok, err := hf.Load(src.FS)
	if err != nil {
		return fail(err)
	}
	file, err := openFile(src)
	if err != nil {
		return fail(err)
	}
	o.Runtime.Name = cmp.Or(o.Runtime.Name, src.Name)
	m, err := open(file, o)
	if err != nil {
		return fail(err)
	}
	return tok, m, nil
}

// openFile reads the ONNX file. External weights that are missing, too short or outside the model's
// folder are reported here, not by a session later. Large files are mapped, not read.
func openFile(src models.Model) (m *onnx.Model, err error) {
	if src.Dir != "" {
		m, err = onnx.Load(filepath.Join(src.Dir, filepath.FromSlash(src.ONNX)))
	} else {
		m, err = onnx.LoadFS(src.FS, src.ONNX)
	}
	if err != nil {
		return nil, err
	}
	return m, m.CheckExternal()
}
