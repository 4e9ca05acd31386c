package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Searches are the results of eval prompt-tune.
type Searches struct {
	Gradhop     string         `json:"gradhop"`
	ONNXRuntime string         `json:"onnxruntime"`
	Seed        uint64         `json:"seed"`
	Models      []task.ModelID `json:"models"`
	Images      []task.Set     `json:"images"`
	Texts       []task.Text    `json:"target_texts"`
	Lengths     []int          `json:"lengths"`
	Repeats     int            `json:"repeats"`
	Steps       int            `json:"steps"`
	Warmup      int            `json:"warmup"`
	Beta        string         `json:"beta"`
	ImageBatch  int            `json:"image_batch"` // of sgdld
	Tokens      string         `json:"tokens"`      // as in prompttune.Settings
	Proposed    int            `json:"tokens_proposed"`
	// Interrupted says that the run ended before all searches were done.
	Interrupted bool       `json:"interrupted"`
	Searches    []Searched `json:"searches"`
}

// Searched is what one sampler came to at one length.
type Searched struct {
	Sampler string            `json:"sampler"` // as given
	Options map[string]string `json:"sampler_options"`
	Length  int               `json:"length"`
	// Best are the best cosines, Texts the prompts that have them, [repeat].
	Best  []run.Number `json:"best"`
	Texts []string     `json:"texts"`
	// Mean and SD are over the repeats; SD, with n-1, is NaN for one repeat.
	Mean run.Number `json:"mean"`
	SD   run.Number `json:"sd"`
	// Evaluations counts states that went through the model for the samplers, Scored texts
	// that did for their cosine alone, over all repeats.
	Evaluations samplers.Counts `json:"evaluations"`
	Scored      int64           `json:"scored"`
	// Seconds is the time of the steps of all repeats, which run as one batch, without
	// that of scoring.
	Seconds float64 `json:"seconds"`
}

// RunPromptTune does what the options say. Errors are those of the command prompt-tune;
// what was finished before an interruption is printed, with an *InterruptedError.
func RunPromptTune(ctx context.Context, o *PromptTuneOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	seekers, err := o.seekers()
	if err != nil {
		return err
	}
	if !o.SeedSet {
		o.Search.Seed = app.RandomSeed()
	}
	f, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer f.Discard()
	o.Form.Length = slices.Max(o.Lengths) // the first to be refused
	o.Goal.Runtime, o.Goal.Hub = o.App.Runtime(), o.App.Hub()
	r, err := task.Open(ctx, &o.Goal, &o.Form, &task.Events{Log: o.App.Logf})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out := &Searches{
		Gradhop: app.Version(), ONNXRuntime: ort.Version(), Seed: o.Search.Seed, Models: r.Models(), Images: r.Sets(), Texts: r.Texts(),
		Lengths: o.Lengths, Repeats: o.Repeats, Steps: o.Search.Steps, Warmup: o.Search.Warmup, Beta: o.Search.Beta,
		ImageBatch: o.Search.ImageBatch, Tokens: r.From(r.Problem), Proposed: len(r.Problem.Tokens), Searches: []Searched{},
	}
	total := len(o.Lengths) * len(seekers)
	defer o.App.Graceful()()
	runErr := o.searchAll(ctx, r, seekers, out)
	if runErr != nil && len(out.Searches) == 0 {
		return runErr
	}
	out.Interrupted = runErr != nil
	if err := o.print(f, out); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	if runErr != nil {
		return &InterruptedError{Finished: len(out.Searches), Of: total, What: "searches", Err: runErr}
	}
	return nil
}

// searchAll runs every sampler at every length.
func (o *PromptTuneOptions) searchAll(ctx context.Context, r *task.Task, seekers []seeker, out *Searches) error {
	bar := o.App.NewBar()
	defer bar.Clear()
	for _, n := range o.Lengths {
		o.Form.Length = n
		p, err := r.With(&o.Form)
		if err != nil {
			return err
		}
		for _, k := range seekers {
			k.search.Seed = o.Search.Seed
			progress := func(step int64) {
				total := int64(o.Search.Warmup + o.Search.Steps)
				bar.Show(fmt.Sprintf("%s, %d blanks", k.name, n), step, total, fmt.Sprintf("step %d", step))
			}
			s, err := search(ctx, p, k, n, progress)
			if err != nil {
				return err
			}
			out.Searches = append(out.Searches, *s)
		}
	}
	return nil
}

// search runs the repeats of one sampler at one length.
func search(ctx context.Context, p *task.Problem, k seeker, length int, progress func(step int64)) (*Searched, error) {
	f, err := task.NewFinder(p, &k.search, false)
	if err != nil {
		return nil, err
	}
	w := &watch{ctx: ctx}
	for range k.search.Chains {
		w.best = append(w.best, task.NewBest(p, task.BestOptions{Keep: 1, Estimates: f.Estimates}))
	}
	f.Config.Observers = []samplers.Observer{w}
	loop, err := f.Loop(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for !loop.Done() {
		if err := loop.Step(ctx); err != nil {
			return nil, err
		}
		progress(loop.State().Step)
	}
	s := &Searched{
		Sampler: k.name, Options: map[string]string{}, Length: length, Seconds: (time.Since(began) - w.spent).Seconds(),
		Evaluations: loop.State().Evaluations,
	}
	for _, flag := range k.reg.Flags {
		s.Options[flag.Name] = flag.Default
	}
	for name, value := range f.Options {
		s.Options[name] = value
	}
	var cosines []float64
	for _, b := range w.best {
		s.Scored += b.Scored()
		best, text := math.NaN(), "" // where a repeat met blocked prompts only
		if list := b.Prompts(); len(list) > 0 {
			best, text = list[0].U, list[0].Text
		}
		cosines = append(cosines, best)
		s.Best, s.Texts = append(s.Best, run.Number(best)), append(s.Texts, text)
	}
	mean, sd := stat.MeanStdDev(cosines, nil)
	s.Mean, s.SD = run.Number(mean), run.Number(sd)
	return s, nil
}

// watch keeps the best prompt of each chain.
type watch struct {
	ctx   context.Context
	best  []*task.Best  // [chain]
	spent time.Duration // in it
}

// Observe implements samplers.Observer.
func (w *watch) Observe(s *samplers.State, _ *samplers.Info) error {
	began := time.Now()
	for c, b := range w.best {
		if _, err := b.Add(w.ctx, s.Step, s.ChainIDs[c:c+1], s.InverseTemperature(0), s.U[c:c+1], s.X.Slice(c, c+1)); err != nil {
			return err
		}
	}
	w.spent += time.Since(began)
	return nil
}
