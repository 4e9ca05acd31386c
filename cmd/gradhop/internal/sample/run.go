package sample

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// run makes the steps. What was done until an interruption or a failure is kept and
// summed up.
func (p *plan) run(ctx context.Context, flags flagSet) error {
	o := p.o
	dir := o.Out
	var w *store.Writer
	var err error
	if o.Resume != "" {
		dir = o.Resume
		var from *samplers.Snapshot
		if w, from, err = store.Resume(dir, p.header, store.Options{Every: o.Every}); err != nil {
			return err
		}
		p.config.Resume = from
		if from != nil {
			p.config.Init = nil
			o.App.Logf("%s: going on after step %d of %d", dir, from.Step, o.Warmup+o.Steps)
		}
	} else {
		if w, err = store.Create(dir, p.header, store.Options{Every: o.Every}); err != nil {
			return err
		}
		o.App.Logf("%s: seed %d", dir, o.Seed)
	}
	picture := ""
	if p.picture != nil {
		picture = fmt.Sprintf("%dx%dx%d", p.picture.Height, p.picture.Width, p.picture.Channels)
	}
	if err := o.remember(dir, flags, picture); err != nil {
		return errors.Join(err, w.Close())
	}
	bar := o.App.NewBar()
	p.config.Observers = []samplers.Observer{w, p.progress(bar)}
	_, err = samplers.Run(ctx, p.config)
	bar.Clear()
	if e := w.Close(); err == nil {
		err = e
	}
	return errors.Join(err, p.finish(dir, err == nil))
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
	if err := s.Write(dir); err != nil {
		return err
	}
	if complete {
		if err := p.export(r, dir); err != nil {
			return err
		}
	}
	if p.o.Format == "json" {
		e := json.NewEncoder(p.o.App.Out)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	return printSummary(p.o.App.Out, dir, s)
}

// export writes the draws in the other forms that were asked for.
func (p *plan) export(r *store.Reader, dir string) error {
	if p.writes("csv") {
		if _, err := r.WriteCSV(filepath.Join(dir, "csv")); err != nil {
			return err
		}
	}
	if p.writes("npz") {
		if err := r.WriteNPZ(filepath.Join(dir, "draws.npz")); err != nil {
			return err
		}
	}
	if p.writes("png") {
		pic := store.Picture{}
		if p.picture != nil {
			pic = *p.picture
		}
		return r.WritePNG(filepath.Join(dir, "draws.png"), pic)
	}
	return nil
}
