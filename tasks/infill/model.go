package infill

import (
	"errors"
	"path/filepath"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/tokenize/hf"
)

// Model is a masked language model with its tokenizer. Any number of texts share it.
// It is safe for concurrent use.
type Model struct {
	// Source is where it was read from.
	Source models.Model

	tok    *hf.Tokenizer
	mlm    *mlm.Model
	words  []int32 // ids that may be proposed at the beginning of a text, sorted
	pieces []int32 // and those that may elsewhere, with pieces "##x"
}

// Load reads a model and makes it an energy. o.MaskID and the folder of external data
// are taken from the model. No session of the runtime is opened yet.
//
// Errors: *neural.OptionError for an option, *VocabularyError, or a *LoadError around
// those of packages tokenize, onnx and neural.
func Load(src models.Model, o mlm.Options) (*Model, error) {
	m := &Model{Source: src}
	fail := func(err error) (*Model, error) {
		return nil, &LoadError{Model: src.Name, Err: err}
	}
	var err error
	if m.tok, err = hf.Load(src.FS); err != nil {
		return fail(err)
	}
	var file *onnx.Model
	if src.Dir != "" {
		file, err = onnx.Load(filepath.Join(src.Dir, filepath.FromSlash(src.ONNX)))
	} else {
		file, err = onnx.LoadFS(src.FS, src.ONNX)
	}
	if err == nil {
		err = checkExternal(file)
	}
	if err != nil {
		return fail(err)
	}
	o.MaskID = m.tok.Mask
	if o.Runtime.Name == "" {
		o.Runtime.Name = src.Name
	}
	m.mlm, err = mlm.New(file, o)
	var option *neural.OptionError
	if errors.As(err, &option) {
		return nil, err
	}
	if err != nil {
		return fail(err)
	}
	if m.tok.Size() != m.mlm.Vocabulary() {
		return nil, &VocabularyError{Model: src.Name, Tokens: m.tok.Size(), Scores: m.mlm.Vocabulary()}
	}
	for id := range int32(m.tok.Size()) {
		if m.tok.IsSpecial(id) || m.tok.IsUnused(id) {
			continue
		}
		m.pieces = append(m.pieces, id)
		if !m.tok.IsContinuation(id) {
			m.words = append(m.words, id)
		}
	}
	return m, nil
}

// checkExternal finds weights in other files that are missing, too short or outside the
// model's folder before a session is opened on them. Large files are mapped, not read.
func checkExternal(m *onnx.Model) error {
	for _, t := range m.Graph.Initializers {
		if t.External == nil {
			continue
		}
		if _, err := m.Data(t); err != nil {
			return err
		}
	}
	return nil
}

// Mask is how the model spells a blank, "[MASK]" as a rule.
func (m *Model) Mask() string { return m.tok.Piece(m.tok.Mask) }

// MaxTokens is the largest number of tokens that the model takes, with the two around
// the text; 0 where its files do not say.
func (m *Model) MaxTokens() int { return m.tok.MaxLen }

// Form is the form of the energy.
func (m *Model) Form() mlm.Form { return m.mlm.Form() }

// Sequences returns the number of sequences that went through the model so far.
func (m *Model) Sequences() int64 { return m.mlm.Sequences() }

// Close frees the runtime's sessions. Problems of m must not be used after it.
func (m *Model) Close() error { return m.mlm.Close() }
