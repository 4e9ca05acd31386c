package prompttune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/recall"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
	"github.com/gradhop/gradhop/tasks/prompttune/page"
)

// Run does what the options say. What was found until an interruption or a failure is
// printed. Errors: *app.Error, *app.OutputError, those of tasks/prompttune.
func Run(ctx context.Context, o *Options) error {
	print, err := newPrinter(o)
	if err != nil {
		return err
	}
	if o.ChainIDs != "" {
		ids, err := recall.ParseIDs(o.ChainIDs)
		if err != nil {
			return err
		}
		o.Search.ChainIDs, o.Search.Chains = ids, len(ids)
	}
	if err := o.Search.Check(); err != nil {
		return err
	}
	if !o.SeedSet {
		o.Search.Seed = app.RandomSeed()
	}
	report := &report{o: o}
	if !o.inside() || o.Resume != "" { // else its folder is not there yet
		if err := report.open(); err != nil {
			return err
		}
	}
	defer report.discard()
	bar := o.App.NewBar()
	defer bar.Clear()
	doc, err := task.Run(ctx, o.config(print, report, bar))
	bar.Clear()
	if doc == nil || print.failed || doc.Stopped == task.StoppedFailed && len(doc.Results) == 0 {
		return err
	}
	return errors.Join(err, print.end(doc))
}

// config is the run, with what shows its progress.
func (o *Options) config(print *printer, report *report, bar *app.Bar) task.Config {
	o.Goal.Runtime, o.Goal.Hub = o.App.Runtime(), o.App.Hub()
	return task.Config{
		Goal: o.Goal, Form: o.Form, Search: o.Search, Out: o.Out, Resume: o.Resume, Every: o.Every, Program: app.Version(),
		Events: task.Events{
			Log: func(format string, args ...any) { bar.Clear(); o.App.Logf(format, args...) },
			Progress: func(stage string, done, total int64, note string) {
				bar.Show(stage, done, total, note)
			},
			Begun: func(ctx context.Context, t *task.Task) error {
				o.App.Graceful() // the models are open
				return report.begin(ctx, t)
			},
			Created: o.remember,
			Improved: func(p task.Prompt, past bool) error {
				if o.Format == "text" && o.App.ErrTerminal && !o.App.Quiet && !past {
					bar.Clear()
					fmt.Fprintf(o.App.Err, "%8.4f  %s\n", p.U, p.Text)
				}
				report.page.Improved(p)
				return print.improvement(p)
			},
			Stepped:  func(s *samplers.State, found []task.Prompt, _ bool) { report.page.Stepped(s, found) },
			Finished: report.end,
		},
	}
}

// report is the page of --report; without one it writes nothing.
type report struct {
	o    *Options
	out  *app.Output
	page page.Page
}

// inside reports whether the page is to lie in the folder of the run.
func (o *Options) inside() bool {
	dir := o.Out + o.Resume // one of them is empty
	return o.Report != "" && dir != "" && filepath.Clean(filepath.Dir(o.Report)) == filepath.Clean(dir)
}

// open refuses a file that cannot be written, before long work.
func (p *report) open() (err error) {
	switch p.o.Report {
	case "":
		return nil
	case "-":
		return app.Usagef("--report -: standard output is for the results; name a file")
	}
	p.out, err = p.o.App.Create(p.o.Report)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Dir(p.o.Report)); e != nil {
			return app.Usagef("--report %s: there is no folder %s", p.o.Report, filepath.Dir(p.o.Report))
		}
	}
	return err
}

// begin reads the images of the targets.
func (p *report) begin(ctx context.Context, t *task.Task) error {
	if p.o.Report == "" {
		return nil
	}
	if p.out == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	bar := p.o.App.NewBar()
	defer bar.Clear()
	p.page.Workers, p.page.MaxPixels = p.o.App.Threads, p.o.Goal.MaxPixels
	p.page.Progress = func(done, total int) {
		bar.Show("images of the page", int64(done), int64(total), fmt.Sprintf("%d of %d", done, total))
	}
	return p.page.Begin(ctx, t)
}

// end writes the page, of an interrupted run too.
func (p *report) end(ctx context.Context, t *task.Task, d *task.Document) error {
	if p.out == nil || d.Stopped == task.StoppedFailed && len(d.Results) == 0 {
		return nil
	}
	if err := p.page.Write(ctx, p.out, t, d); err != nil {
		return err
	}
	return p.out.Commit()
}

// discard removes what was written of the page, unless all of it was.
func (p *report) discard() {
	if p.out != nil {
		p.out.Discard()
	}
}
