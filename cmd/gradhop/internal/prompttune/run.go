package prompttune

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Run does what the options say. Errors: *app.UsageError, *app.OutputError,
// *NoPictureError, those of packages tasks/prompttune, samplers and store. What was found
// until an interruption is printed.
func Run(ctx context.Context, o *Options) (err error) {
	print, err := newPrinter(o)
	if err != nil {
		return err
	}
	if err := o.Search.check(); err != nil {
		return err
	}
	reg, _, err := o.Search.registration()
	if err != nil {
		return err
	}
	if !o.SeedSet {
		o.Search.Seed = app.RandomSeed()
	}
	if err := o.Search.Try(max(1, len(o.Targets.Models))); err != nil {
		return err
	}
	keep, err := o.newKeeper()
	if err != nil {
		return err
	}
	page, err := o.newReporter()
	if err != nil {
		return err
	}
	defer page.discard()
	r, err := Open(ctx, o.App, &o.Targets, &o.Prompt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	search, err := NewFinder(r.Problem, &o.Search, o.Prompt.RoundTrip)
	if err != nil {
		return err
	}
	doc := o.record(r, reg, search)
	bar := o.App.NewBar()
	search.Improved = func(p task.Prompt) error {
		if o.Format == "text" && o.App.ErrTerminal && !o.App.Quiet {
			bar.Clear()
			fmt.Fprintf(o.App.Err, "%8.4f  %s\n", p.Cosine, p.Text)
		}
		page.improvement(Result(p))
		return print.improvement(Result(p))
	}
	total := int64(o.Search.Warmup + o.Search.Steps)
	search.Stepped = func(s *samplers.State, _ *samplers.Info) {
		page.step(s, search.Best)
		bar.Show(reg.Name, s.Step, total, note(s, search.Best))
	}
	search.Config.Observers = append(search.Config.Observers, keep)
	loop, err := search.Loop(ctx)
	if err != nil {
		return err
	}
	if err := keep.begin(r, search, doc); err != nil {
		return err
	}
	if err := page.begin(ctx, r); err != nil {
		return errors.Join(err, keep.abandon())
	}
	stopped, took, err := search.Steps(ctx, loop)
	bar.Clear()
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, keep.abandon())
	}
	doc.Results, doc.Diagnostics, doc.Stopped = results(search.Best.Prompts()), diagnose(loop, search.Best, took), stopped
	write := func() error { return page.end(ctx, r, doc, search.Estimates) }
	if e := print.end(doc); e != nil {
		return errors.Join(e, keep.abandon(), write())
	}
	return errors.Join(err, keep.end(doc), write())
}

// note is what stands behind the progress line: the step, the inverse temperature and the
// best cosine.
func note(s *samplers.State, best *task.Best) string {
	text := fmt.Sprintf("step %d, beta %.3g", s.Step, s.InverseTemperature())
	if list := best.Prompts(); len(list) > 0 {
		text += fmt.Sprintf(", best %.4f", list[0].Cosine)
	}
	return text
}
