package prompttune

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Run does what the options say. Errors: *app.Error, *app.OutputError,
// *NoPictureError, those of packages tasks/prompttune, samplers and store. What was found
// until an interruption or a failure is printed.
func Run(ctx context.Context, o *Options) (err error) {
	print, err := newPrinter(o)
	if err != nil {
		return err
	}
	if err := o.chains(); err != nil {
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
	o.watch(search, page, print, bar)
	loop, err := keep.start(ctx, r, search, doc)
	if err != nil {
		bar.Clear()
		return err
	}
	if err := page.begin(ctx, r); err != nil {
		return errors.Join(err, keep.abandon())
	}
	stopped, took, err := search.Steps(ctx, loop)
	bar.Clear()
	doc.Results, doc.Stopped = results(search.Best.Prompts()), stopped
	doc.Diagnostics = search.diagnose(loop.State(), keep.before+took.Seconds())
	return conclude(err, doc, keep, print, func() error { return page.end(ctx, r, doc, search.Estimates) })
}

// conclude shows what was found by a run that ended with err, and keeps it in the folder
// where that did not fail. write writes the page.
func conclude(err error, doc *Document, keep *keeper, print *printer, write func() error) error {
	if doc.Stopped == stoppedFailed {
		err = errors.Join(err, keep.fail(err))
		var closed *app.OutputError
		if len(doc.Results) == 0 || errors.As(err, &closed) {
			return err
		}
		return errors.Join(err, print.end(doc), write())
	}
	if e := print.end(doc); e != nil {
		return errors.Join(e, keep.abandon(), write())
	}
	return errors.Join(err, keep.end(doc), write())
}

// watch shows what a search finds, and takes it down for the page.
func (o *Options) watch(search *Finder, page *reporter, print *printer, bar *app.Bar) {
	live := o.Format == "text" && o.App.ErrTerminal && !o.App.Quiet
	search.Improved = func(p task.Prompt, past bool) error {
		if live && !past {
			bar.Clear()
			fmt.Fprintf(o.App.Err, "%8.4f  %s\n", p.Cosine, p.Text)
		}
		page.improvement(Result(p))
		return print.improvement(Result(p))
	}
	search.Stepped = func(s *samplers.State, _ *samplers.Info, past bool) {
		page.step(s, search.Best)
		label := o.Search.Sampler
		if past {
			label = "reading " + o.Resume
		}
		bar.Show(label, s.Step, int64(o.Search.steps()), note(s, search.Best))
	}
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
