package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

// PromptOptions are the settings of [Prompts].
type PromptOptions struct {
	Goal prompttune.Goal
	// Form is the form of the prompts. Its Length is set from Lengths, the numbers of blanks.
	Form    prompttune.Form
	Lengths []int
	// Search holds the settings common to all entrants. Its Chains are the repeats.
	Search   prompttune.Search
	Entrants []PromptEntrant
	// Version is the version of the program, for the record.
	Version string
	// Begun is called before the first step, and Progress after every step. Both may be nil.
	Begun    func()
	Progress func(sampler string, length int, step, steps int64)
	// Log, which may be nil, receives messages.
	Log func(format string, args ...any)
}

// PromptEntrant is a sampler with its settings.
type PromptEntrant struct {
	Name   string // name in results
	Search prompttune.Search
}

// PromptResult is the result of [Prompts] with all settings needed to repeat it.
type PromptResult struct {
	Gradhop     string               `json:"gradhop"`
	ONNXRuntime string               `json:"onnxruntime"`
	Seed        uint64               `json:"seed"`
	Models      []prompttune.ModelID `json:"models"`
	Images      []prompttune.Set     `json:"images"`
	Texts       []prompttune.Text    `json:"target_texts"`
	Lengths     []int                `json:"lengths"`
	Repeats     int                  `json:"repeats"`
	Steps       int                  `json:"steps"`
	Warmup      int                  `json:"warmup"`
	Beta        string               `json:"beta"`
	ImageBatch  int                  `json:"image_batch"` // for sgdld
	Tokens      string               `json:"tokens"`      // as in prompttune.Settings
	Proposed    int                  `json:"tokens_proposed"`
	// Interrupted means that the run ended before all searches were done.
	Interrupted bool           `json:"interrupted"`
	Searches    []PromptSearch `json:"searches"`
}

// PromptSearch is the result of one sampler at one length.
type PromptSearch struct {
	Sampler string            `json:"sampler"` // name as given
	Options samplers.Settings `json:"sampler_options"`
	Length  int               `json:"length"`
	// Best holds the best cosines, Texts their prompts, [repeat].
	Best  []diag.Number `json:"best"`
	Texts []string      `json:"texts"`
	// Mean and SD are over the repeats. SD, with divisor n-1, is NaN for one repeat.
	Mean diag.Number `json:"mean"`
	SD   diag.Number `json:"sd"`
	// Evaluations counts the states evaluated for the samplers; Scored counts texts evaluated only for
	// their cosine. Both are over all repeats.
	Evaluations samplers.Counts `json:"evaluations"`
	Scored      int64           `json:"scored"`
	// Seconds is the time of the steps of all repeats, which run as one batch, without scoring.
	Seconds float64 `json:"seconds"`
}

// Prompts searches prompts of several lengths with several samplers, as in table 3 of Sun et al.
// (2023). If it ends early, the result has the finished searches, and is nil if there are none. Errors
// are those of prompttune.Run.
func Prompts(ctx context.Context, o PromptOptions) (out *PromptResult, err error) {
	if len(o.Lengths) == 0 || len(o.Entrants) == 0 {
		return nil, errors.New("eval: no lengths or no samplers to compare")
	}
	o.Form.Length = slices.Max(o.Lengths) // the longest fails first
	r, err := prompttune.Open(ctx, &o.Goal, &o.Form, &prompttune.Events{Log: o.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s := o.Search
	out = &PromptResult{
		Gradhop: o.Version, ONNXRuntime: ort.Version(), Seed: s.Seed, Models: r.Models(), Images: r.Sets(), Texts: r.Texts(),
		Lengths: o.Lengths, Repeats: s.Chains, Steps: s.Steps, Warmup: s.Warmup, Beta: s.Beta,
		ImageBatch: s.ImageBatch, Tokens: r.From(r.Problem), Proposed: len(r.Problem.Tokens), Searches: []PromptSearch{},
	}
	if o.Begun != nil {
		o.Begun()
	}
	err = o.searchAll(ctx, r, out)
	if err != nil && len(out.Searches) == 0 {
		return nil, err
	}
	if out.Interrupted = err != nil; out.Interrupted {
		err = fmt.Errorf("%d of %d searches finished: %w", len(out.Searches), len(o.Lengths)*len(o.Entrants), err)
	}
	return out, err
}

// searchAll runs every sampler at every length.
func (o *PromptOptions) searchAll(ctx context.Context, r *prompttune.Task, out *PromptResult) error {
	for _, n := range o.Lengths {
		o.Form.Length = n
		p, err := r.With(&o.Form)
		if err != nil {
			return err
		}
		for _, k := range o.Entrants {
			k.Search.Seed = o.Search.Seed
			s, err := k.find(ctx, p, n, func(step int64) {
				if o.Progress != nil {
					o.Progress(k.Name, n, step, int64(o.Search.Warmup+o.Search.Steps))
				}
			})
			if err != nil {
				return err
			}
			out.Searches = append(out.Searches, *s)
		}
	}
	return nil
}

// find runs the repeats of a sampler at one length.
func (k *PromptEntrant) find(ctx context.Context, p *prompttune.Problem, length int, progress func(step int64)) (*PromptSearch, error) {
	reg, err := samplers.Lookup(k.Search.Sampler)
	if err != nil {
		return nil, err
	}
	f, err := prompttune.NewFinder(p, &k.Search, false)
	if err != nil {
		return nil, err
	}
	w := &watch{ctx: ctx}
	for range k.Search.Chains {
		w.best = append(w.best, prompttune.NewBest(p, prompttune.BestOptions{Keep: 1, Estimates: f.Estimates}))
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
	s := &PromptSearch{
		Sampler: k.Name, Options: reg.Settings(f.Options), Length: length, Seconds: (time.Since(began) - w.spent).Seconds(),
		Evaluations: loop.State().Evaluations,
	}
	var cosines []float64
	for _, b := range w.best {
		s.Scored += b.Scored()
		best, text := math.NaN(), "" // where a repeat met blocked prompts only
		if list := b.Prompts(); len(list) > 0 {
			best, text = list[0].U, list[0].Text
		}
		cosines = append(cosines, best)
		s.Best, s.Texts = append(s.Best, diag.Number(best)), append(s.Texts, text)
	}
	mean, sd := stat.MeanStdDev(cosines, nil)
	s.Mean, s.SD = diag.Number(mean), diag.Number(sd)
	return s, nil
}

// watch keeps the best prompt of each chain.
type watch struct {
	ctx   context.Context
	best  []*prompttune.Best // [chain]
	spent time.Duration      // in it
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

// Table has a row of headings and one for each sampler, with a column for each length.
func (r *PromptResult) Table(title string, cell func(*PromptSearch) string) [][]string {
	head := []string{title}
	for _, n := range r.Lengths {
		head = append(head, strconv.Itoa(n)+" blanks")
	}
	rows, at := [][]string{head}, map[string]int{}
	for k := range r.Searches {
		s := &r.Searches[k]
		if at[s.Sampler] == 0 {
			at[s.Sampler] = len(rows)
			rows = append(rows, append([]string{s.Sampler}, slices.Repeat([]string{"-"}, len(r.Lengths))...))
		}
		rows[at[s.Sampler]][1+slices.Index(r.Lengths, s.Length)] = cell(s)
	}
	return rows
}

// Winner is the repeat with the best cosine, -1 where none has one.
func (s *PromptSearch) Winner() int {
	at := -1
	for i, v := range s.Best {
		if v == v && (at < 0 || v > s.Best[at]) {
			at = i
		}
	}
	return at
}

// Rows returns a CSV table: a header row and a row for each repeat with its settings.
func (r *PromptResult) Rows() [][]string {
	rows := [][]string{{"sampler", "options", "length", "repeat", "cosine", "text", "gradient", "density", "conditional", "scored", "seconds",
		"repeats", "steps", "warmup", "beta", "image_batch", "seed", "model", "text_sha256", "gradhop", "onnxruntime"}}
	var model, sum []string
	for _, m := range r.Models {
		model, sum = append(model, m.Name), append(sum, m.TextSHA256)
	}
	for _, s := range r.Searches {
		for k, v := range s.Best {
			row := []string{s.Sampler, ListSettings(s.Options, ";"), strconv.Itoa(s.Length), strconv.Itoa(k), v.Text(6), s.Texts[k]}
			for _, n := range []int64{s.Evaluations.Gradient, s.Evaluations.Density, s.Evaluations.Conditional, s.Scored} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			row = append(row, diag.Number(s.Seconds).Text(3))
			for _, n := range []int{r.Repeats, r.Steps, r.Warmup} {
				row = append(row, strconv.Itoa(n))
			}
			rows = append(rows, append(row, r.Beta, strconv.Itoa(r.ImageBatch), strconv.FormatUint(r.Seed, 10),
				strings.Join(model, "+"), strings.Join(sum, "+"), r.Gradhop, r.ONNXRuntime))
		}
	}
	return rows
}
