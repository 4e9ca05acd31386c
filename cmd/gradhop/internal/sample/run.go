package sample

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/samplers/store/export"
)

// run makes the steps. What was done until an interruption or a failure is kept and
// summed up; a run that cannot begin leaves no folder.
func (p *plan) run(ctx context.Context, flags flagSet) error {
	o := p.o
	bar := o.App.NewBar()
	var w *store.Writer
	p.config.Observers = []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error { return w.Observe(s, info) }), p.progress(bar),
	}
	dir, loop, err := p.begin(ctx, &w)
	if err != nil {
		return err
	}
	picture := ""
	if p.picture != nil {
		picture = fmt.Sprintf("%dx%dx%d", p.picture.Height, p.picture.Width, p.picture.Channels)
	}
	if err := o.remember(dir, flags, picture); err != nil {
		return errors.Join(err, w.Close())
	}
	for err == nil && !loop.Done() {
		err = loop.Step(ctx)
	}
	bar.Clear()
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		again := ""
		if value := new(samplers.NonFiniteError); !errors.As(err, &value) { // which would come again
			again = fmt.Sprintf("; gradhop sample --resume %s goes on", dir)
		}
		o.App.Logf("%s: stopped after step %d of %d%s", dir, loop.State().Step, o.Warmup+o.Steps, again)
		err = p.explainNonFinite(err, dir)
	}
	return errors.Join(err, p.finish(dir, err == nil))
}

// begin opens the folder and makes the loop, whose first evaluation shows whether the
// model can be used: a new folder is made after it.
func (p *plan) begin(ctx context.Context, w **store.Writer) (dir string, loop *samplers.Loop, err error) {
	o := p.o
	if o.Resume == "" {
		if err := store.Vacant(o.Out); err != nil {
			return "", nil, app.Unwritable(o.Out, err)
		}
		if loop, err = samplers.NewLoop(ctx, p.config); err != nil {
			return "", nil, p.explainStart(err)
		}
		if *w, err = store.Create(o.Out, p.header, store.Options{Every: o.Every}); err != nil {
			return "", nil, app.Unwritable(o.Out, err)
		}
		o.App.Logf("%s: seed %d", o.Out, o.Seed)
		return o.Out, loop, nil
	}
	var from *samplers.Snapshot
	if *w, from, err = store.Resume(o.Resume, p.header, store.Options{Every: o.Every}); err != nil {
		return "", nil, err
	}
	if p.config.Resume = from; from != nil {
		p.config.Init = nil
		if from.Step == int64(o.Warmup+o.Steps) {
			o.App.Logf("%s: all %d steps are made; a larger --steps makes more", o.Resume, from.Step)
		} else {
			o.App.Logf("%s: going on after step %d of %d", o.Resume, from.Step, o.Warmup+o.Steps)
		}
	}
	if loop, err = samplers.NewLoop(ctx, p.config); err != nil {
		return "", nil, errors.Join(p.explainStart(err), (*w).Close())
	}
	return o.Resume, loop, nil
}

// progress shows how far a run is.
func (p *plan) progress(bar *app.Bar) samplers.Observer {
	total := int64(p.o.Warmup + p.o.Steps)
	return samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		accept := 0.0
		for _, a := range info.Accept {
			accept += a / float64(len(info.Accept))
		}
		note := fmt.Sprintf("acceptance %.2f", accept)
		if s.Warmup {
			note = "warm-up, " + note
		}
		bar.Show(p.title(), s.Step, total, note)
		return nil
	})
}

// finish writes what is made of the draws, and prints the summary. Of a run that
// broke off there may be nothing to sum up.
func (p *plan) finish(dir string, complete bool) error {
	r, err := store.Open(dir)
	if err != nil {
		return err
	}
	if !complete && r.Draws(store.Sampling) == 0 {
		return nil
	}
	s, err := store.Summarize(r, store.TableOptions{})
	if err != nil {
		return err
	}
	if complete {
		if err := p.export(r, dir, s); err != nil {
			return err
		}
	}
	if err := s.Write(dir); err != nil {
		return err
	}
	if p.o.Format == "json" {
		text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
		if err != nil {
			return err
		}
		_, err = p.o.App.Out.Write(text)
		return err
	}
	return printSummary(p.o.App.Out, dir, s)
}

// export writes the draws in the other forms that were asked for.
func (p *plan) export(r *store.Reader, dir string, s *store.Summary) error {
	if p.writes("csv") {
		paths, err := export.WriteCSV(r, filepath.Join(dir, "csv"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := s.AddExport(dir, filepath.Join("csv", filepath.Base(path))); err != nil {
				return err
			}
		}
	}
	if p.writes("npz") {
		if err := export.WriteNPZ(r, filepath.Join(dir, "draws.npz")); err != nil {
			return err
		}
		if err := s.AddExport(dir, "draws.npz"); err != nil {
			return err
		}
	}
	if p.writes("png") {
		pic := export.Picture{}
		if p.picture != nil {
			pic = *p.picture
		}
		if err := export.WritePNG(r, filepath.Join(dir, "draws.png"), pic); err != nil {
			return err
		}
		return s.AddExport(dir, "draws.png")
	}
	return nil
}
