package infill

import (
	"context"
	"errors"

	"github.com/gradhop/gradhop/tasks/corpus"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// filled is the result for a line of a corpus.
type filled struct {
	Line    int64           `json:"line"`
	Results []task.Sentence `json:"results"`
	Stopped string          `json:"stopped,omitempty"` // as in task.Answer
}

func (o *options) fillCorpus(ctx context.Context) (err error) {
	m, release, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	o.app.Graceful()
	settings := struct {
		Model string `json:"model_sha256"`
		task.Settings
	}{m.ID().SHA256, m.Settings(o.Options)}
	_, err = o.corpus.Run(ctx, o.app, settings, func(ctx context.Context, records []corpus.Record, done func(int)) ([]corpus.Result, error) {
		texts := make([]string, len(records))
		for k, r := range records {
			texts[k] = r.Text
		}
		list, err := m.FillAll(ctx, texts, o.Words, o.Search, done)
		if err != nil {
			return nil, err
		}
		results := make([]corpus.Result, len(list))
		for k, f := range list {
			if results[k].Err = f.Err; f.Err == nil {
				results[k].Value = filled{records[k].Line, f.Answer.Sentences, f.Answer.Stopped}
			}
		}
		return results, nil
	})
	return err
}
