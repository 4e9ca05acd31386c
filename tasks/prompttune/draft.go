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
		return d, badInput("draft", "%s: %v", s.Draft, err)
	}
	return d, nil
}

// openDraft opens the draft of the problem, if the options name one: the same models on another
// provider, or another model, by which the targets are encoded too.
func (r *Task) openDraft(ctx context.Context, g *Goal, s *Search, ev *Events) error {
	is, err := s.parseDraft(g.Runtime)
	if err != nil || s.Draft == "" {
		return err
	}
	d := &Task{words: r.words, guides: r.guides}
	r.draft = d
	if is.Model == "" {
		rt := is.On(g.Runtime)
		rt.Progress = nil
		for _, m := range r.members {
			same, err := Load(m.Model.Source, clip.Options{MaxBatch: g.MaxBatch, Runtime: rt})
			if err != nil {
				return err
			}
			d.members = append(d.members, member{Model: same, Weight: m.Weight, Targets: m.Targets})
		}
		r.draftName = is.Provider
	} else {
		other := *g
		other.Models, other.Guides = []string{is.Model}, nil
		files, err := list(r.sets)
		if err != nil {
			return err
		}
		if err := d.load(ctx, &other); err != nil {
			return err
		}
		if err := d.encode(ctx, g, ev, r.sets, files, r.texts); err != nil {
			return err
		}
		r.draftName = fmt.Sprintf("%s sha256:%s", d.models[0].Name, d.models[0].TextSHA256)
	}
	if err := sameVocabulary(r.members[0].Model, d.members[0].Model); err != nil {
		return err
	}
	r.Problem.draft, err = r.Problem.with(d)
	return err
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
