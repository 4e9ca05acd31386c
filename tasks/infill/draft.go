package infill

import (
	"context"
	"fmt"

	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/tasks/internal/draft"
)

// parseDraft reads the option.
func (m *Model) parseDraft(text string) (draft.Draft, error) {
	d, err := draft.Parse(text, m.options.Runtime)
	if err != nil {
		return d, badOption("draft", "%s: %v", text, err)
	}
	return d, nil
}

// draft returns the draft of that name, which is opened on first use: m itself on another provider,
// or another model of the same vocabulary.
func (m *Model) draft(ctx context.Context, text string) (*Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.drafts[text]; d != nil {
		return d, nil
	}
	is, err := m.parseDraft(text)
	if err != nil {
		return nil, err
	}
	src, o := m.Source, m.options
	if is.Model == "" {
		o.Runtime = is.On(o.Runtime)
	} else if src, err = models.Open(ctx, is.Model, m.hub); err != nil {
		return nil, err
	}
	o.Runtime.Name = ""
	d, err := Load(src, o)
	if err != nil {
		return nil, err
	}
	if err := sameVocabulary(m, d); err != nil {
		return nil, err
	}
	m.drafts[text] = d
	return d, nil
}

// sameVocabulary returns an *InputError where the tokens of a draft are not those of the model.
func sameVocabulary(m, d *Model) error {
	a, b := m.tok.Size(), d.tok.Size()
	if a != b {
		return badOption("draft", "%s has a vocabulary of %d tokens, %s has %d: give a draft with the tokenizer of the model", d.Source.Name, b, m.Source.Name, a)
	}
	if id := firstDifference(m.tok, d.tok); id >= 0 {
		return badOption("draft", "token %d is %q to %s and %q to %s: give a draft with the tokenizer of the model", id, d.tok.Piece(id), d.Source.Name, m.tok.Piece(id), m.Source.Name)
	}
	if a, b := m.mlm.Vocabulary(), d.mlm.Vocabulary(); a != b {
		return badOption("draft", "%s scores %d words, %s scores %d: give a draft with the vocabulary of the model", d.Source.Name, b, m.Source.Name, a)
	}
	return nil
}

// draftName names the draft in full: its provider, or the model with its checksum.
func (m *Model) draftName(ctx context.Context, text string) (string, error) {
	is, err := m.parseDraft(text)
	if err != nil || is.Model == "" {
		return is.Provider, err
	}
	d, err := m.draft(ctx, text)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s sha256:%s", d.Source.Name, d.Source.SHA256), nil
}
