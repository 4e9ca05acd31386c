package score

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/tasks/corpus"
	"github.com/gradhop/gradhop/tasks/infill"
)

func (o *options) scoreCorpus(ctx context.Context) (err error) {
	m, guides, release, err := o.energy.OpenGuided(ctx, o.app)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	o.app.Graceful()
	set := m.Settings(infill.Options{Words: infill.TextOptions{Guides: guides}})
	settings := struct {
		Model         string            `json:"model_sha256"`
		Energy        mlm.Form          `json:"energy"`
		MaskEmbedding mlm.MaskEmbedding `json:"mask_embedding"`
		Words         []int             `json:"words,omitempty"`
		Provider      string            `json:"provider"`
		Guides        []infill.GuideID  `json:"guides,omitempty"`
	}{m.ID().SHA256, m.Form(), o.energy.MaskEmbedding, o.words, set.Provider, set.Guides}
	_, err = o.corpus.Run(ctx, o.app, settings, func(ctx context.Context, records []corpus.Record, done func(int)) ([]corpus.Result, error) {
		results := make([]corpus.Result, len(records))
		for lo := 0; lo < len(records); lo += atOnce {
			part := records[lo:min(lo+atOnce, len(records))]
			if err := o.scorePart(ctx, m, guides, part, results[lo:]); err != nil {
				return nil, err
			}
			done(len(part))
		}
		return results, nil
	})
	return err
}

// scorePart scores records together. Those with a field words are scored at these words.
func (o *options) scorePart(ctx context.Context, m *infill.Model, guides []*infill.Guide, records []corpus.Record, results []corpus.Result) error {
	texts := make([]infill.Text, len(records))
	for k, r := range records {
		texts[k] = infill.Text{Text: r.Text, Words: o.words}
		if list, given := r.Fields["words"]; given {
			if json.Unmarshal(list, &texts[k].Words) != nil {
				results[k].Err = fmt.Errorf("the field \"words\" is no list of numbers: %.40s", list)
			}
		}
	}
	scores, errs, err := m.Score(ctx, texts, guides...)
	if err != nil {
		return err
	}
	for k := range records {
		if results[k].Err == nil {
			results[k] = corpus.Result{Value: newScoreJSON(records[k].Line, scores[k]), Err: errs[k]}
		}
	}
	return nil
}
