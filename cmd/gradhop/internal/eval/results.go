package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// Results are what eval infill finds, with all that is needed to make it again. They are
// the same for equal settings and seed but for Seconds.
type Results struct {
	Gradhop     string      `json:"gradhop"`     // version
	ONNXRuntime string      `json:"onnxruntime"` // version
	Seed        uint64      `json:"seed"`
	Model       run.ModelID `json:"model"`
	Task        Task        `json:"task"`
	References  []Reference `json:"references"`
	// MixPerRef is the number of sentences of each file in the corpus BLEU; 0 means all.
	MixPerRef int      `json:"mix_per_ref"`
	Keep      Keep     `json:"keep"`
	Samplers  []Scored `json:"samplers"`
	// Interrupted says that samplers are missing, because the run ended early.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Task is the file that was run.
type Task struct {
	File      string `json:"file"`
	SHA256    string `json:"sha256"`
	Sentences int    `json:"sentences"`
}

// Reference is a file of reference sentences.
type Reference struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"` // compared with
	Removed   int    `json:"removed"`   // sentences of the task
}

// Scored is a sampler with its scores.
type Scored struct {
	Sampler string `json:"sampler"` // as it was asked for; Settings have its full name
	// Note is what a reader should know of a sampler that is not exact.
	Note     string             `json:"note,omitempty"`
	Settings run.Settings       `json:"settings"`
	Report   textmetrics.Report `json:"report"`
	// Acceptance, Hops are means over chains, sentences and the steps after warm-up.
	Acceptance run.Number `json:"acceptance"`
	Hops       run.Number `json:"hops"`
	// Sequences went through the model, for Evaluations of states.
	Sequences   int64           `json:"sequences"`
	Evaluations samplers.Counts `json:"evaluations"`
	Seconds     float64         `json:"seconds"` // of steps and initial evaluation
	Sentences   []Kept          `json:"sentences"`
}

// Kept is a sentence that was scored.
type Kept struct {
	Sentence int        `json:"sentence"` // of the task, from 0
	Text     string     `json:"text"`
	LogP     run.Number `json:"logp"`
}

// CorpusBLEU is that against all references together.
func (s *Scored) CorpusBLEU() textmetrics.Percent {
	all := sets(s.Report)
	return all[len(all)-1].BLEU
}

// RunInfill does what the options say. Where the run ends early, samplers that were
// finished are printed and the error is an *InterruptedError around its cause. Other
// errors: *app.Error (around *TaskError or *FileError where a file is at fault),
// *app.OutputError, or those of packages run, infill, samplers and ort.
func RunInfill(ctx context.Context, o *InfillOptions) (err error) {
	if !o.SeedSet {
		o.Chains.Seed = app.RandomSeed()
	}
	c, err := o.prepare()
	if err != nil {
		return err
	}
	out, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	if o.SamplesOut != "" {
		if err := os.MkdirAll(o.SamplesOut, 0o777); err != nil {
			return &app.OutputError{Path: o.SamplesOut, Before: true, Err: err}
		}
	}
	b, err := o.open(ctx, c.items)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.model.Close()) }()
	r := &c.results
	r.ONNXRuntime, r.Model = ort.Version(), run.Identify(b.model.Source)
	defer o.App.Graceful()()
	stopped := o.score(ctx, b, c)
	if stopped != nil && len(r.Samplers) == 0 {
		return stopped
	}
	r.Interrupted = stopped != nil
	if err := o.print(out, r); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return early(len(r.Samplers), len(c.entrants), stopped)
}

// score runs and scores every sampler, and adds those that it finishes to the results.
func (o *InfillOptions) score(ctx context.Context, b *bench, c *contest) error {
	bar := o.App.NewBar()
	defer bar.Clear()
	for _, e := range c.entrants {
		var t tally
		steps, sentences := int64(e.chains.Warmup+e.chains.Steps), len(b.problems)
		for k := range b.problems {
			err := b.run(ctx, k, e, o.Keep, &t, func(step int64) {
				bar.Show(e.name, int64(k)*steps+step, int64(sentences)*steps, fmt.Sprintf("sentence %d of %d", k+1, sentences))
			})
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%s, sentence %d: %w", e.name, k, err)
			}
			if err != nil {
				return err
			}
		}
		s := Scored{
			Sampler: e.name, Note: run.NotExact(e.reg), Settings: run.Record(o.Energy, e.chains, o.App.Provider),
			Acceptance: run.Number(t.acceptance / float64(t.chains)), Hops: run.Number(t.hops / float64(t.chains)),
			Sequences: t.sequences, Evaluations: t.counts, Seconds: t.took.Seconds(), Sentences: t.kept,
		}
		texts := make([][]string, len(t.kept))
		for k, kept := range t.kept {
			texts[k] = strings.Fields(kept.Text)
		}
		s.Report = c.metrics.Compute(texts, c.refs)
		if err := o.save(s); err != nil {
			return err
		}
		c.results.Samplers = append(c.results.Samplers, s)
	}
	return nil
}

// save writes the sentences of a sampler to --samples-out.
func (o *InfillOptions) save(s Scored) error {
	if o.SamplesOut == "" {
		return nil
	}
	out, err := o.App.Create(filepath.Join(o.SamplesOut, s.Sampler+".txt"))
	if err != nil {
		return err
	}
	defer out.Discard()
	for _, k := range s.Sentences {
		if _, err := fmt.Fprintln(out, k.Text); err != nil {
			return err
		}
	}
	return out.Commit()
}
