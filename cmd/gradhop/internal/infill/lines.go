package infill

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// result is what came of a text: an answer or draws, or an error.
type result struct {
	problem *task.Problem
	answer  *task.Answer
	draws   *task.Draws
	err     error
}

// runAll runs every text and prints what comes of it. Equal lines are computed once.
func (o *Options) runAll(ctx context.Context, m *task.Model, in *app.Lines, print *printer) error {
	failed, of := 0, 0
	known := map[string]result{}
	for {
		text, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		r, again := known[text]
		if !again {
			r = o.run(ctx, m, text, in)
			known[text] = r
		}
		if r.answer != nil || r.draws != nil {
			if err := print.result(in.Number, r); err != nil {
				return err
			}
		}
		of++
		switch {
		case r.err == nil:
		case in.Name == "" || !isOfText(r.err):
			return r.err
		default:
			failed++
			o.App.Errorf("%s:%d: %v", in.Name, in.Number, r.err)
			if err := print.failure(in.Number, text, r.err); err != nil {
				return err
			}
		}
	}
	switch {
	case of == 0:
		return app.Usagef("no text in %s", in.Name)
	case failed > 0:
		return &app.Error{Code: 1, Err: fmt.Errorf("%d of %d inputs failed", failed, of)}
	}
	return nil
}

// run computes one text. An interrupted run has a result and the error of ctx.
func (o *Options) run(ctx context.Context, m *task.Model, text string, in *app.Lines) (r result) {
	label := ""
	if in.Number > 0 {
		label = fmt.Sprintf("line %d: ", in.Number)
	}
	bar := o.App.NewBar()
	defer bar.Clear()
	if r.problem, r.err = m.Text(text, o.Words); r.err != nil {
		return r
	}
	if o.Draws > 0 {
		r.draws, r.err = r.problem.Draw(ctx, o.Sampling, 0, func(done, total int) {
			bar.Show(label+"sampling", int64(done), int64(total), fmt.Sprintf("%d of %d steps", done, total))
		})
		if r.draws != nil && r.err == nil && !r.draws.Diagnostics.Mixed() {
			o.App.Logf("%s%s", label, r.draws.Diagnostics.Verdict)
		}
		return r
	}
	search := o.Search
	search.Progress = func(p task.Progress) { bar.Show(label+p.Stage, int64(p.Done), int64(p.Total), p.Best) }
	if r.answer, r.err = r.problem.Search(ctx, search); r.err == nil {
		r.err = ctx.Err()
	}
	return r
}

// isOfText reports whether another text may do better: the settings, the model and the
// runtime are not at fault.
func isOfText(err error) bool {
	var input *task.InputError
	var number *samplers.NonFiniteError
	return errors.As(err, &input) && input.OfText() || errors.As(err, &number)
}
