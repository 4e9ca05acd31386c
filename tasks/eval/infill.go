package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/tasks/infill"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// Entrant is a sampler with its settings.
type Entrant struct {
	Name string // name in results
	Draw infill.DrawOptions
}

// Infilling compares samplers on masked sentences.
type Infilling struct {
	// Items are the sentences; File is their file, for errors.
	Items []Item
	File  string
	// References are the reference sets for Metrics.
	References []textmetrics.Refs
	Metrics    textmetrics.Options
	// Entrants run one after the other from the same initial states, with equal numbers of chains.
	Entrants []Entrant
	// Words selects the words that may be filled in.
	Words infill.TextOptions
	// Keep and Top select the sentences of a run that are scored.
	Keep Keep
	Top  int
	// Progress, which may be nil, is called after every step.
	Progress func(Progress)
}

// Progress is the progress of a comparison.
type Progress struct {
	Sampler         string
	Sentence, Steps int // sentences done by the sampler, and steps made on the next one
	Of, StepsOf     int // their totals
}

// Scored is an entrant with its scores.
type Scored struct {
	Entrant Entrant            `json:"-"`
	Report  textmetrics.Report `json:"report"`
	// Acceptance and Hops are averages over chains, sentences and the steps after warm-up.
	Acceptance diag.Number `json:"acceptance"`
	Hops       diag.Number `json:"hops"`
	// Sequences is the number of sequences evaluated by the model; Evaluations counts states.
	Sequences   int64           `json:"sequences"`
	Evaluations samplers.Counts `json:"evaluations"`
	Seconds     float64         `json:"seconds"` // of steps and initial evaluation
	Sentences   []Kept          `json:"sentences"`
}

// Kept is a scored sentence.
type Kept struct {
	Sentence int         `json:"sentence"` // index in the task, from 0
	Text     string      `json:"text"`
	LogP     diag.Number `json:"logp"`
}

// CorpusBLEU returns the BLEU against all references together.
func (s *Scored) CorpusBLEU() textmetrics.Percent {
	all := Sets(s.Report)
	return all[len(all)-1].BLEU
}

// Problems tokenizes the sentences with a model. Errors are *FileError.
func (e *Infilling) Problems(m *infill.Model) ([]*infill.Problem, error) {
	var out []*infill.Problem
	for k, it := range e.Items {
		p, err := m.Text(strings.ReplaceAll(it.Sentence, maskWord, m.Mask()), e.Words)
		if err != nil {
			return nil, &FileError{Path: e.File, Where: where(k, "sentence"), Err: err}
		}
		if len(p.Blanks) != len(it.Positions) {
			return nil, &FileError{Path: e.File, Where: where(k, "infill_pos"), Err: maskCount(len(p.Blanks), len(it.Positions))}
		}
		out = append(out, p)
	}
	return out, nil
}

// Run runs the comparison and passes the result of each entrant to done. Errors are those of Problems,
// of done, of the runtime, or of a sampler.
func (e *Infilling) Run(ctx context.Context, m *infill.Model, done func(Scored) error) error {
	problems, err := e.Problems(m)
	if err != nil {
		return err
	}
	starts := make([][]int32, len(problems))
	for _, entrant := range e.Entrants {
		t := &tally{e: e, m: m, entrant: entrant}
		for k, p := range problems {
			ids := make([]int64, entrant.Draw.Chains)
			for i := range ids { // different sentences use different random numbers
				ids[i] = int64(k*entrant.Draw.Chains + i)
			}
			if starts[k] == nil {
				if starts[k], err = entrant.Draw.Starts(ctx, p, ids); err != nil {
					return err
				}
			}
			if err := t.run(ctx, k, p, ids, starts[k]); err != nil {
				if ctx.Err() == nil {
					err = fmt.Errorf("%s, sentence %d: %w", entrant.Name, k, err)
				}
				return err
			}
		}
		if err := done(t.score()); err != nil {
			return err
		}
	}
	return nil
}

// tally accumulates the runs of one entrant.
type tally struct {
	e                *Infilling
	m                *infill.Model
	entrant          Entrant
	counts           samplers.Counts
	sequences        int64
	acceptance, hops float64 // sums over chains
	chains           int
	took             time.Duration
	kept             []Kept
}

// run runs the chains of sentence k and adds their results.
func (t *tally) run(ctx context.Context, k int, p *infill.Problem, ids []int64, start []int32) error {
	o := t.entrant.Draw
	reg, err := samplers.Lookup(o.Sampler)
	if err != nil {
		return err
	}
	kernel, err := reg.New(p.Energy, o.Options)
	if err != nil {
		return err
	}
	best := newCollector(t.e.Keep, p, t.e.Top, t.m.Temperature())
	p.Energy.Forget() // clear states cached for the previous sampler
	before, began := t.m.Sequences(), time.Now()
	loop, err := samplers.NewLoop(ctx, samplers.Config{
		Kernel: kernel, Chains: o.Chains, ChainIDs: ids, Init: slices.Clone(start), Steps: o.Steps, Warmup: o.Warmup, Seed: o.Seed,
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
		if t.e.Progress != nil {
			t.e.Progress(Progress{t.entrant.Name, k, int(loop.State().Step), len(t.e.Items), o.Warmup + o.Steps})
		}
	}
	t.took += time.Since(began)
	t.sequences += t.m.Sequences() - before
	t.add(loop.Result())
	for _, s := range best.sentences(loop.State()) {
		t.kept = append(t.kept, Kept{Sentence: k, Text: words(s.Text), LogP: s.LogP})
	}
	return nil
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

func (t *tally) score() Scored {
	texts := make([][]string, len(t.kept))
	for k, kept := range t.kept {
		texts[k] = strings.Fields(kept.Text)
	}
	return Scored{
		Entrant: t.entrant, Report: t.e.Metrics.Compute(texts, t.e.References),
		Acceptance: diag.Number(t.acceptance / float64(t.chains)), Hops: diag.Number(t.hops / float64(t.chains)),
		Sequences: t.sequences, Evaluations: t.counts, Seconds: t.took.Seconds(), Sentences: t.kept,
	}
}

// words returns a sentence in the format of the metrics.
func words(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

// Check returns an error for settings that are invalid for every model: an *infill.InputError or that
// of a sampler.
func (e *Infilling) Check() error {
	if len(e.Entrants) == 0 {
		return errors.New("eval: no samplers to compare")
	}
	for _, x := range e.Entrants {
		if err := x.Draw.Check(); err != nil {
			return err
		}
	}
	if len(e.Items) == 0 {
		return errors.New("eval: no sentences")
	}
	return nil
}
