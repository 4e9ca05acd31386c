package prompttune

import (
	"context"
	"fmt"

	"github.com/gradhop/gradhop/energies/neural/clip"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/tasks/internal/draft"
)

// parseDraft reads Search.Draft, given where the models run.
func (s *Search) parseDraft(o ort.Options) (draft.Draft, error) {
	d, err := draft.Parse(s.Draft, o)
	if err != nil {
		return d, badInput("draft", "%s: %w", s.Draft, err)
	}
	return d, nil
}

// openDraft opens the draft of the problem, if the options name one: the same models on another
// provider, or another model, by which the targets are encoded too.
func (r *Task) openDraft(ctx context.Context, o *Config) error {
	is, err := o.Search.parseDraft(o.Goal.Runtime)
	if err != nil || o.Search.Draft == "" {
		return err
	}
	r.draft = &Task{words: r.words, guides: r.guides}
	if is.Model != "" {
		if err := r.draft.loadDraft(ctx, &o.Goal, &o.Events, is.Model); err != nil {
			return err
		}
		r.draftName = fmt.Sprintf("%s sha256:%s", r.draft.models[0].Name, r.draft.models[0].TextSHA256)
	} else if err := r.copyTo(r.draft, is.On(o.Goal.Runtime), o.Goal.MaxBatch); err != nil {
		return err
	} else {
		r.draftName = is.Provider
	}
	if err := sameVocabulary(r.members[0].Model, r.draft.members[0].Model); err != nil {
		return err
	}
	r.Problem.draft, err = r.Problem.with(r.draft)
	return err
}

// loadDraft reads another model and encodes the targets by it.
func (r *Task) loadDraft(ctx context.Context, g *Goal, ev *Events, name string) error {
	other := *g
	other.Models, other.Guides = []string{name}, nil
	sets, texts, err := g.parse()
	if err != nil {
		return err
	}
	files, err := list(sets)
	if err != nil {
		return err
	}
	if err := r.load(ctx, &other); err != nil {
		return err
	}
	return r.encode(ctx, g, ev, sets, files, texts)
}

// copyTo gives d the models of r with other options of the runtime, and with the targets that r encoded.
func (r *Task) copyTo(d *Task, rt ort.Options, maxBatch int) error {
	rt.Progress = nil
	for _, m := range r.members {
		same, err := Load(m.Model.Source, clip.Options{MaxBatch: maxBatch, Runtime: rt})
		if err != nil {
			return err
		}
		d.members = append(d.members, member{Model: same, Weight: m.Weight, Targets: m.Targets})
	}
	return nil
}

// with returns the problem on the models of another task of the same vocabulary: tokens and
// template are those of p.
func (p *Problem) with(r *Task) (*Problem, error) {
	q := *p
	q.members = r.members
	if err := q.build(); err != nil {
		return &q, err
	}
	return &q, q.addGuides(r.guides, nil)
}

// closeDraft frees the sessions of the draft.
func (r *Task) closeDraft() error {
	if r.draft == nil {
		return nil
	}
	r.draft.guides = nil // r closes them
	return r.draft.Close()
}
