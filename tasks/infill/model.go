package infill

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/energies/neural/text"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/tasks/internal/firstrun"
	"github.com/gradhop/gradhop/tasks/internal/language"
	"github.com/gradhop/gradhop/tokenize/hf"
)

// Model is a language model with its tokenizer: a masked one, or a causal one, which [Model.Score] takes and nothing else.
// Any number of texts share it. It is safe for concurrent use.
type Model struct {
	// Source is where it was read from.
	Source models.Model
	// Warn, which may be nil, takes a line about a text that is read, such as that some of its tokens are unknown.
	// It is set before the model is used.
	Warn func(line string)

	ref string // as Open was given
	tok *hf.Tokenizer
	mlm *mlm.Model
	// causal is nil for a masked model, which mlm is then.
	causal *text.Model
	// options are those that mlm was made with.
	options mlm.Options
	first   []int32 // ids that may be proposed at the beginning of a text, sorted
	inside  []int32 // elsewhere, and
	pieces  []int32 // with pieces that continue a word
	// lowers says that the tokenizer lower-cases what it reads.
	lowers bool

	hub    hub.Options
	mu     sync.Mutex
	drafts map[string]*Model // those that were used, by the text of the option
}

// Open finds a model by name, as [models.Open] does, and the runtime's library, fetching
// both if the options allow. o.MaskID is ignored.
//
// Errors: those of [Load], models and ort.
func Open(ctx context.Context, name string, h hub.Options, o mlm.Options) (*Model, error) {
	src, err := models.Open(ctx, name, h)
	if err != nil {
		return nil, err
	}
	// The model comes first, so that a wrong one costs no download of the library.
	library := o.Runtime
	o.Runtime.Progress = nil
	m, err := Load(src, o)
	if err != nil {
		return nil, err
	}
	if err := ort.Init(ctx, library); err != nil {
		return nil, err
	}
	m.ref, m.hub = name, h
	return m, nil
}

// Load reads a model and makes it an energy. o.MaskID and the folder of external data
// are taken from the model. No session of the runtime is opened yet.
//
// Errors: *onnx.ArgumentError for an option, or a *neural.ModelError around those of packages
// tokenize, onnx and mlm.
func Load(src models.Model, o mlm.Options) (*Model, error) {
	m := &Model{Source: src, drafts: map[string]*Model{}}
	var err error
	if m.tok, m.mlm, m.options, err = language.Load(src, o); errors.Is(err, language.ErrCausal) {
		return m.loadCausal(o)
	}
	if err != nil {
		return nil, err
	}
	// Exporters pad vocabularies to a multiple of 64 or 128 rows.
	if have, want := m.tok.Size(), m.mlm.Vocabulary(); have > want || want-have > have/8 {
		return nil, &neural.ModelError{Model: src.Name, Err: fmt.Errorf("its tokenizer has %d tokens, its logits have %d", have, want)}
	}
	m.first, m.inside, m.pieces = m.tok.Words(true), m.tok.Words(false), m.tok.Printable()
	m.lowers = lowerCases(m.tok)
	return m, nil
}

func lowerCases(t *hf.Tokenizer) bool {
	upper, err := t.Encode("A")
	lower, err2 := t.Encode("a")
	return err == nil && err2 == nil && len(upper) == 1 && len(lower) == 1 && upper[0].ID == lower[0].ID && upper[0].ID != t.Unk
}

// Mask is how the model spells a blank, "[MASK]" as a rule.
func (m *Model) Mask() string {
	if m.causal != nil {
		return "[MASK]" // so that one is found, and refused
	}
	return m.tok.Piece(m.tok.Mask)
}

// Form is the form of the energy.
func (m *Model) Form() mlm.Form {
	if m.causal != nil {
		return Causal
	}
	return m.mlm.Form()
}

// temperature is what U is divided by.
func (m *Model) temperature() float64 {
	if m.causal != nil {
		return 1
	}
	return m.mlm.Temperature()
}

// Sequences returns the number of sequences that went through the model so far.
func (m *Model) Sequences() int64 {
	if m.causal != nil {
		return m.causal.Sequences()
	}
	return m.mlm.Sequences()
}

// Try evaluates a few states of a short text, with gradients, and searches among them, so that errors of
// the model, the runtime or its provider show.
func (m *Model) Try(ctx context.Context) error {
	if m.causal != nil {
		_, errs, err := m.Score(ctx, []Text{{Text: "a b"}})
		return errors.Join(err, errs[0])
	}
	p, err := m.Text(m.Mask(), TextOptions{})
	if err != nil {
		return err
	}
	if err := firstrun.Evaluate(ctx, p.Energy); err != nil {
		return err
	}
	_, err = p.Search(ctx, SearchOptions{Top: 1, Beam: 1, Pool: 1, Moves: 1})
	return err
}

// Close frees the runtime's sessions. Problems of m must not be used after it.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.causal != nil {
		return m.causal.Close()
	}
	err := m.mlm.Close()
	for _, d := range m.drafts {
		err = errors.Join(err, d.Close())
	}
	return err
}
