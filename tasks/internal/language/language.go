// Package language loads masked language models for the tasks that use one: the energy and the
// tokenizer that belongs to it.
package language

import (
	"errors"
	"path/filepath"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
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
	if tok.Mask < 0 {
		return fail(errors.New("the tokenizer has no mask token"))
	}
	file, err := open(src)
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

// open reads the ONNX file. External weights that are missing, too short or outside the model's
// folder are reported here, not by a session later. Large files are mapped, not read.
func open(src models.Model) (m *onnx.Model, err error) {
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
