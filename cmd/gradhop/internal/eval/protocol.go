package eval

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
)

// bench is a model with the problems of a task, which all samplers share.
type bench struct {
	model       *infill.Model
	temperature float64
	problems    []*infill.Problem
	starts      [][]int32 // of each problem, [chain, site]; nil until they are needed
}

// open loads the model, reads the task's sentences with it, and finds the runtime's
// library (fetching it where the options allow). Sentences come before the library, so
// that a task that does not fit costs no fetch.
func (o *InfillOptions) open(ctx context.Context, items []Item) (b *bench, err error) {
	model, err := o.Energy.Load(ctx, o.App.Hub(), o.App.Runtime())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, model.Close())
		}
	}()
	b = &bench{model: model, temperature: o.Energy.Temperature, starts: make([][]int32, len(items))}
	for k, it := range items {
		p, err := model.Text(strings.ReplaceAll(it.Sentence, maskWord, model.Mask()), infill.TextOptions{Pieces: o.Chains.Pieces})
		if err != nil {
			return nil, &TaskError{Path: o.Task, Item: k, Field: "sentence", Err: err}
		}
		if len(p.Blanks) != len(it.Positions) {
			return nil, app.Usage(&TaskError{Path: o.Task, Item: k, Field: "infill_pos", Err: &MaskCountError{len(p.Blanks), len(it.Positions)}})
		}
		b.problems = append(b.problems, p)
	}
	return b, ort.Init(ctx, o.App.Runtime())
}

// tally sums up the runs of one sampler.
type tally struct {
	counts           samplers.Counts
	sequences        int64
	acceptance, hops float64 // sums over chains
	chains           int
	took             time.Duration
	kept             []Kept
}

// run makes the chains of sentence k and adds what they came to. Chains are numbered
// through the whole task, so that no two sentences share random numbers.
func (b *bench) run(ctx context.Context, k int, e entrant, keep Keep, t *tally, progress func(step int64)) error {
	p, c := b.problems[k], e.chains
	kernel, err := e.reg.New(p.Energy, c.Options)
	if err != nil {
		return err
	}
	ids := make([]int64, c.Chains)
	for i := range ids {
		ids[i] = int64(k*c.Chains + i)
	}
	if err := b.start(ctx, k, c, ids); err != nil {
		return err
	}
	best := newCollector(keep, p, c.Top)
	p.Energy.Forget() // what another sampler met
	before := b.model.Sequences()
	began := time.Now()
	loop, err := samplers.NewLoop(ctx, samplers.Config{
		Kernel: kernel, Chains: c.Chains, ChainIDs: ids, Init: b.starts[k], Steps: c.Steps, Warmup: c.Warmup, Seed: c.Seed,
		Observers: []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			best.add(s)
			return nil
		})},
	})
	if err != nil {
		return err
	}
	for !loop.Done() {
		if err := loop.Step(ctx); err != nil {
			return err
		}
		progress(loop.State().Step)
	}
	t.took += time.Since(began)
	t.sequences += b.model.Sequences() - before
	t.add(loop.Result())
	for _, s := range best.sentences(loop.State()) {
		t.kept = append(t.kept, Kept{Sentence: k, Text: words(s.Text), LogP: run.Number(s.U * b.temperature)})
	}
	return nil
}

// start draws the states that the chains of sentence k start from, once for all
// samplers.
func (b *bench) start(ctx context.Context, k int, c run.Chains, ids []int64) (err error) {
	if b.starts[k] != nil {
		return nil
	}
	b.starts[k], err = c.Starts(ctx, b.problems[k], ids)
	return err
}

func (t *tally) add(r *samplers.Result) {
	n := r.State.Evaluations
	t.counts.Density += n.Density
	t.counts.Gradient += n.Gradient
	t.counts.Conditional += n.Conditional
	for c := range r.Acceptance {
		t.acceptance += r.Acceptance[c]
		t.hops += r.Hops[c]
	}
	t.chains += len(r.Acceptance)
}

// words is a sentence as the metrics read it.
func words(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }
