package sample

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/samplers/store/export"
	"github.com/gradhop/gradhop/tasks/internal/firstrun"
)

// Run starts the run in Options.Out, or continues that in Options.Resume. It returns the summary, which
// it also writes to the folder.
//
// A run that cannot start leaves no folder. If a run ends early because ctx ends or the model fails,
// its draws are kept, and the summary is returned with the error; it has no diagnostics if they would
// take about a second or more. Errors are *OptionError, *store.Error, *store.MismatchError, and those
// of the model, the runtime and the sampler.
func Run(ctx context.Context, o Options) (*store.Summary, error) {
	if err := o.chooseDraft(ctx); err != nil {
		return nil, err
	}
	p, err := o.plan(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var w *store.Writer
	p.config.Observers = []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error { return w.Observe(s, info) }),
	}
	if o.Progress != nil {
		p.config.Observers = append(p.config.Observers, p.progress())
	}
	if p.draft != nil {
		p.config.Observers = append(p.config.Observers, p.watchDraft())
	}
	dir, loop, err := p.begin(ctx, &w)
	if err != nil {
		return nil, err
	}
	if err := p.save(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	for err == nil && !loop.Done() {
		err = loop.Step(ctx)
	}
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		again := ""
		if value := new(samplers.NonFiniteError); !errors.As(err, &value) { // resuming would fail again
			again = "; it can be resumed"
		}
		o.log(fmt.Sprintf("%s: stopped after step %d of %d%s", dir, loop.State().Step, o.Warmup+o.Steps, again))
		err = p.explainNonFinite(err, dir)
	}
	s, failed := p.finish(dir, err == nil)
	return s, errors.Join(err, failed)
}

// Try evaluates U, and its gradient if there is one, at four random states of the model of o, whose other
// options are not looked at; see Run for the errors.
func Try(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	p := &plan{o: &o}
	p.header.Settings = map[string]string{}
	defer p.close()
	if _, err := p.open(ctx, make([]int64, firstrun.States)); err != nil {
		return err
	}
	return p.explainStart(firstrun.Evaluate(ctx, p.energy))
}

// begin opens the folder and creates the loop. The first evaluation tests the model before the folder
// is created.
func (p *plan) begin(ctx context.Context, w **store.Writer) (dir string, loop *samplers.Loop, err error) {
	o := p.o
	if o.Resume != "" {
		return p.resume(ctx, w)
	}
	if err := store.Vacant(o.Out); err != nil {
		return "", nil, err
	}
	if loop, err = samplers.NewLoop(ctx, p.config); err != nil {
		return "", nil, p.explainStart(err)
	}
	if err := p.checkRows(ctx); err != nil {
		return "", nil, err
	}
	if *w, err = store.Create(o.Out, p.header, store.Options{Every: o.Every}); err != nil {
		return "", nil, err
	}
	o.log(fmt.Sprintf("%s: seed %d", o.Out, o.Seed))
	return o.Out, loop, nil
}

// rowStates is the number of states for comparing batched with single evaluation.
const rowStates = 5

// checkRows rejects a model whose batch rows interact, unless it runs one chain at a time.
func (p *plan) checkRows(ctx context.Context) error {
	if p.o.OneByOne || p.model == nil {
		return nil
	}
	want := energies.Density
	if r, err := samplers.Lookup(p.header.Sampler); err == nil && r.Needs.Has(energies.Gradient) {
		want = energies.Gradient
	}
	ids := make([]int64, rowStates)
	for k := range ids {
		ids[k] = int64(k)
	}
	err := energies.CheckRows(ctx, p.energy, want, samplers.RandomCodes(p.energy.Space(), p.o.Seed, ids))
	var rows *energies.RowsError
	if errors.As(err, &rows) {
		return &OptionError{"", p.o.Model, fmt.Sprintf("rows of a batch interact: at state %s, %s is %.9g alone and %.9g in a batch; --one-by-one evaluates one chain at a time",
			p.write(rows.State), rows.What, rows.Alone, rows.Among)}
	}
	return p.explainStart(err)
}

// resume opens the folder of an existing run.
func (p *plan) resume(ctx context.Context, w **store.Writer) (dir string, loop *samplers.Loop, err error) {
	o := p.o
	var from *samplers.Snapshot
	if *w, from, err = store.Resume(o.Resume, p.header, store.Options{Every: o.Every}); err != nil {
		return "", nil, err
	}
	step := int64(0)
	if from != nil {
		p.config.Resume, p.config.Init, step = from, nil, from.Step
	}
	damage := (*w).Damage()
	for _, d := range damage {
		o.log(fmt.Sprintf("%s: %s", o.Resume, d))
	}
	switch total := int64(o.Warmup + o.Steps); {
	case len(damage) > 0:
		o.log(fmt.Sprintf("%s: damaged; steps after %d of %d are made again", o.Resume, step, total))
	case step == total:
		o.log(fmt.Sprintf("%s: all %d steps have been made; use a larger --steps for more", o.Resume, step))
	case step > 0:
		o.log(fmt.Sprintf("%s: continuing after step %d of %d", o.Resume, step, total))
	}
	if loop, err = samplers.NewLoop(ctx, p.config); err != nil {
		return "", nil, errors.Join(p.explainStart(err), (*w).Close())
	}
	return o.Resume, loop, nil
}

// progress returns an observer that reports every step.
func (p *plan) progress() samplers.Observer {
	total := int64(p.o.Warmup + p.o.Steps)
	return samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		accept := 0.0
		for _, a := range info.Accept {
			accept += a / float64(len(info.Accept))
		}
		p.o.Progress(Progress{s.Step, total, s.Warmup, accept})
		return nil
	})
}

// quickValues is the number of values whose diagnostics take a fraction of a second.
const quickValues = 1 << 19

// finish writes the exported files and the summary. An interrupted run must end at once, so diagnostics
// of many draws are skipped.
func (p *plan) finish(dir string, complete bool) (*store.Summary, error) {
	r, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if !complete {
		values := r.Draws(store.Sampling) * r.Chains() * (r.Header().Space.Sites + 1)
		if values == 0 {
			return nil, nil
		}
		if values > quickValues {
			p.o.log(fmt.Sprintf("%s: diagnostics skipped; gradhop diagnose %s computes them", dir, dir))
			s := store.Totals(r)
			return s, s.Write(dir)
		}
	}
	var forms []string
	if complete {
		forms = p.o.forms(r.Header(), p.picture)
	}
	return summarize(r, forms, p.picture)
}

// forms returns the formats to export.
func (o *Options) forms(h store.Header, pic *export.Picture) []string {
	if len(o.Write) > 0 {
		return o.Write
	}
	var list []string
	if h.Space.Sites <= export.CSVWidth {
		list = append(list, "csv")
	}
	if pic != nil {
		list = append(list, "png")
	}
	return list
}

// summarize exports the draws and returns the summary with the list of exported files.
func summarize(r *store.Reader, forms []string, pic *export.Picture) (*store.Summary, error) {
	s, err := store.Summarize(r, store.TableOptions{})
	if err != nil {
		return nil, err
	}
	dir := r.Dir()
	for _, form := range forms {
		var names []string
		switch form {
		case "csv":
			paths, err := export.WriteCSV(r, filepath.Join(dir, "csv"))
			if err != nil {
				return nil, err
			}
			for _, path := range paths {
				names = append(names, filepath.Join("csv", filepath.Base(path)))
			}
		case "npz":
			names, err = []string{"draws.npz"}, export.WriteNPZ(r, filepath.Join(dir, "draws.npz"))
		case "png":
			if pic == nil {
				pic = &export.Picture{}
			}
			names, err = []string{"draws.png"}, export.WritePNG(r, filepath.Join(dir, "draws.png"), *pic)
		}
		for _, name := range names {
			if err == nil {
				err = s.AddExport(dir, name)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return s, s.Write(dir)
}
