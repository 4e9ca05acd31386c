package eval

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/eval"
	"github.com/gradhop/gradhop/tasks/infill"
)

// InfillOptions are the flags of eval infill.
type InfillOptions struct {
	App      *app.App
	Task     string
	Refs     []string
	Mix      int // sentences of each reference file in the mixture; 0 means all
	Samplers []string
	Energy   run.Energy
	Draw     infill.DrawOptions // of all samplers; Sampler is set from Samplers
	Pieces   bool
	Keep     eval.Keep
	Top      int
	// Originals leaves the task's own sentences among the references.
	Originals bool
	// SeedSet says that Draw.Seed was given; else one is drawn.
	SeedSet    bool
	Format     string
	Out        string
	SamplesOut string // folder for the sentences that are scored, or ""
}

const infillLong = `Run several samplers on the masked sentences of a task file and print the table of
Zhang, Liu and Liu (2022): self-BLEU and unique 2- and 3-grams for diversity, corpus
BLEU against all references together for quality, and what it cost.

The protocol: for every sentence, run 25 chains and score the 5 best by log-density of
the 25 sentences where they end. Published runs have 50 steps in all, with step sizes
tuned by hand. Here --steps 50 follow --warmup 50, which replaces that tuning; every
sampler makes both. For 50 steps in all, give --warmup 0 and a --step-size.

The task file is a JSON array of objects with gt_sentence, sentence (with [MASK]) and
infill_pos. References that are one of its original sentences are left out, as in
published evaluations of this task. The scored sentences are lower-cased and split at
white space.

seconds are of steps alone. sequences went through the model: one for each blank of a
state under pll, one a state under mrf, one a conditional, and none for a state that is
cached from an earlier step of the same sampler.`

// NewInfill returns the command eval infill. runF replaces the run in tests of flags;
// nil means the real one.
func NewInfill(a *app.App, runF func(context.Context, *InfillOptions) error) *cobra.Command {
	o := &InfillOptions{
		App: a, Samplers: []string{"gibbs-model", "gwg", "dula", "dmala"}, Keep: eval.KeepLast, Top: 5, Energy: run.DefaultEnergy(),
		Draw: infill.DrawOptions{Options: samplers.Settings{}, Chains: 25, Steps: 50, Warmup: 50, Init: infill.StartMask},
	}
	cmd := &cobra.Command{
		Use:   "infill [flags] --task task.json --refs refs.txt",
		Short: "Compare samplers on masked sentences by the protocol of papers",
		Long:  infillLong,
		Example: `  gradhop eval infill --task infilling_task.json --refs tbc.txt --refs wiki103.txt --seed 1
  gradhop eval infill --task task.json --refs refs.txt --samplers dmala --format csv --samples-out samples`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.Usagef("unexpected argument %q; the task file is given by --task", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.SeedSet = cmd.Flags().Changed("seed")
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return RunInfill(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags())
	for flag, list := range map[string][]string{
		"samplers": samplers.Names(), "keep": {string(eval.KeepLast), string(eval.KeepVisited)}, "energy": {"pll", "pll-raw", "mrf"},
		"mask-embedding": {"mask", "zero"}, "gradient": {"exact", "direct"}, "init": {"search", "mask", "argmax", "random"},
		"model": models.MLMs(),
	} {
		// The only error is a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveDefault))
	}
	completeFormat(cmd)
	return cmd
}

func (o *InfillOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.Task, "task", "", "JSON `file` of masked sentences")
	f.StringArrayVar(&o.Refs, "refs", nil, "`file` of reference sentences, one a line; may be given several times")
	f.IntVar(&o.Mix, "mix", 0, "with several references, take the first `n` sentences of each for the corpus BLEU; 0 for all")
	f.BoolVar(&o.Originals, "keep-originals", false, "leave the task's original sentences among the references")
	f.StringSliceVar(&o.Samplers, "samplers", o.Samplers, "samplers to compare, `names` with commas, see gradhop samplers")
	f.StringVar((*string)(&o.Keep), "keep", string(o.Keep), "what --top are the best of: last (the sentences where chains end, as published) or visited (all distinct ones, warm-up included)")
	f.IntVar(&o.Top, "top", o.Top, "sentences to score of each task sentence, see --keep")
	o.Energy.AddFlags(f)
	f.IntVar(&o.Draw.Chains, "chains", o.Draw.Chains, "chains, which run as one batch")
	f.IntVar(&o.Draw.Steps, "steps", o.Draw.Steps, "steps after warm-up")
	f.IntVar(&o.Draw.Warmup, "warmup", o.Draw.Warmup, "steps before, in which step sizes are adapted")
	f.StringVar((*string)(&o.Draw.Init), "init", string(o.Draw.Init), "where chains start: mask (drawn from the prediction with all blanks masked), argmax (its most probable words), search (the fillings that a search finds) or random")
	f.BoolVar(&o.Pieces, "pieces", o.Pieces, `fill in pieces too, such as "##ing"`)
	f.Uint64Var(&o.Draw.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, csv or json")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	f.StringVar(&o.SamplesOut, "samples-out", "", "`folder` for the scored sentences, a file SAMPLER.txt each, as eval text reads them")
	app.SamplerFlags(f, &o.Draw.Options)
}

// entrants checks the settings and gives each sampler those options that it has. An
// option that none of them has is an error, as one that a single sampler lacks is.
func (o *InfillOptions) entrants() ([]eval.Entrant, error) {
	if len(o.Samplers) == 0 {
		return nil, app.Usagef("no sampler: name at least one with --samplers")
	}
	var list []eval.Entrant
	unused := maps.Clone(o.Draw.Options)
	for k, name := range o.Samplers {
		if slices.Contains(o.Samplers[:k], name) {
			return nil, app.Usagef("--samplers names %s twice", name)
		}
		reg, err := samplers.Lookup(name)
		if err != nil {
			return nil, err
		}
		e := eval.Entrant{Name: name, Draw: o.Draw}
		e.Draw.Sampler, e.Draw.Options = name, samplers.Settings{}
		for _, f := range reg.Flags {
			if v, ok := o.Draw.Options[f.Name]; ok {
				e.Draw.Options[f.Name] = v
				delete(unused, f.Name)
			}
		}
		list = append(list, e)
	}
	if len(unused) > 0 {
		return nil, app.Usagef("none of the samplers has the option --%s", slices.Sorted(maps.Keys(unused))[0])
	}
	return list, nil
}

// prepare checks the settings and reads the files that they name.
func (o *InfillOptions) prepare() (*eval.Infilling, *results, error) {
	if err := checkFormat(o.Format); err != nil {
		return nil, nil, err
	}
	switch {
	case o.Task == "":
		return nil, nil, app.Usagef("no task: give a file with --task")
	case o.Top < 1:
		return nil, nil, app.Usagef("--top %d: want 1 or more", o.Top)
	case o.Keep != eval.KeepLast && o.Keep != eval.KeepVisited:
		return nil, nil, app.Usagef("--keep %q: want last or visited", o.Keep)
	}
	c := &eval.Infilling{File: o.Task, Words: infill.TextOptions{Pieces: o.Pieces}, Keep: o.Keep, Top: o.Top}
	var err error
	if c.Entrants, err = o.entrants(); err != nil {
		return nil, nil, err
	}
	var data []byte
	if c.Items, data, err = eval.ReadTask(o.Task); err != nil {
		return nil, nil, err
	}
	if err := c.Check(); err != nil {
		return nil, nil, err
	}
	refs, err := readRefs(o.Refs, o.Mix)
	if err != nil {
		return nil, nil, err
	}
	removed := make([]int, len(refs))
	c.References = refs
	if !o.Originals {
		if c.References, removed, err = eval.RemoveOriginals(refs, c.Items); err != nil {
			return nil, nil, app.Usagef("a reference file has no sentence but those of the task: %w", err)
		}
	}
	c.Metrics = eval.Mixture(o.Mix, c.References)
	sum := sha256.Sum256(data)
	r := &results{
		Gradhop: app.Version(), Seed: o.Draw.Seed, Task: taskFile{o.Task, hex.EncodeToString(sum[:]), len(c.Items)},
		MixPerRef: o.Mix, Keep: o.Keep, Samplers: []scored{},
	}
	for k, ref := range c.References {
		r.References = append(r.References, reference{ref.Name, len(ref.Sentences), removed[k]})
	}
	return c, r, nil
}

// RunInfill does what the options say. Where the run ends early, samplers that were
// finished are printed and the error is an *InterruptedError around its cause.
func RunInfill(ctx context.Context, o *InfillOptions) (err error) {
	if !o.SeedSet {
		o.Draw.Seed = app.RandomSeed()
	}
	c, r, err := o.prepare()
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
	m, err := o.Energy.Load(ctx, o.App)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	// A task that does not fit the model costs no download of the library.
	if _, err := c.Problems(m); err != nil {
		return err
	}
	if err := ort.Init(ctx, o.App.Runtime()); err != nil {
		return err
	}
	r.ONNXRuntime, r.Model = ort.Version(), run.Identify(m.Source)
	defer o.App.Graceful()()
	stopped := o.compare(ctx, c, m, r)
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
	if stopped != nil {
		return &InterruptedError{len(r.Samplers), len(c.Entrants), "samplers", stopped}
	}
	return nil
}

// compare adds the samplers that finish to the results.
func (o *InfillOptions) compare(ctx context.Context, c *eval.Infilling, m *infill.Model, r *results) error {
	bar := o.App.NewBar()
	defer bar.Clear()
	c.Progress = func(p eval.Progress) {
		bar.Show(p.Sampler, int64(p.Sentence*p.StepsOf+p.Steps), int64(p.Of*p.StepsOf), fmt.Sprintf("sentence %d of %d", p.Sentence+1, p.Of))
	}
	return c.Run(ctx, m, func(s eval.Scored) error {
		reg, err := samplers.Lookup(s.Entrant.Draw.Sampler)
		if err != nil {
			return err
		}
		r.Samplers = append(r.Samplers, scored{s.Entrant.Name, run.NotExact(reg), o.record(reg, s.Entrant), s})
		return o.save(s)
	})
}

// save writes the sentences of a sampler to --samples-out.
func (o *InfillOptions) save(s eval.Scored) error {
	if o.SamplesOut == "" {
		return nil
	}
	out, err := o.App.Create(filepath.Join(o.SamplesOut, s.Entrant.Name+".txt"))
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

// results are what eval infill finds, with all that is needed to make it again. They are
// the same for equal settings and seed but for seconds.
type results struct {
	Gradhop     string      `json:"gradhop"`     // version
	ONNXRuntime string      `json:"onnxruntime"` // version
	Seed        uint64      `json:"seed"`
	Model       run.ModelID `json:"model"`
	Task        taskFile    `json:"task"`
	References  []reference `json:"references"`
	// MixPerRef is the number of sentences of each file in the corpus BLEU; 0 means all.
	MixPerRef int       `json:"mix_per_ref"`
	Keep      eval.Keep `json:"keep"`
	Samplers  []scored  `json:"samplers"`
	// Interrupted says that samplers are missing, because the run ended early.
	Interrupted bool `json:"interrupted,omitempty"`
}

type taskFile struct {
	File      string `json:"file"`
	SHA256    string `json:"sha256"`
	Sentences int    `json:"sentences"`
}

type reference struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"` // compared with
	Removed   int    `json:"removed"`   // sentences of the task
}

type scored struct {
	Sampler string `json:"sampler"`
	// Note is what a reader should know of a sampler that is not exact.
	Note     string   `json:"note,omitempty"`
	Settings settings `json:"settings"`
	eval.Scored
}

type settings struct {
	Sampler        string            `json:"sampler"`
	Exact          bool              `json:"sampler_exact"`
	SamplerOptions map[string]string `json:"sampler_options"`
	Energy         string            `json:"energy"`
	MaskEmbedding  string            `json:"mask_embedding"`
	Gradient       string            `json:"gradient"`
	Temperature    float64           `json:"temperature"`
	Chains         int               `json:"chains"`
	Steps          int               `json:"steps"`
	Warmup         int               `json:"warmup"`
	Init           string            `json:"init"`
	Pieces         bool              `json:"pieces"`
	Top            int               `json:"top"`
	Provider       string            `json:"provider"`
}

func (o *InfillOptions) record(r samplers.Registration, e eval.Entrant) settings {
	return settings{
		Sampler: r.Name, Exact: r.Exact, SamplerOptions: run.Options(r, e.Draw.Options), Energy: o.Energy.Form, MaskEmbedding: o.Energy.MaskEmbedding,
		Gradient: o.Energy.Gradient, Temperature: o.Energy.Temperature, Chains: e.Draw.Chains, Steps: e.Draw.Steps, Warmup: e.Draw.Warmup,
		Init: string(e.Draw.Init), Pieces: o.Pieces, Top: o.Top, Provider: o.App.Provider,
	}
}

// print writes results in the format asked for.
func (o *InfillOptions) print(w io.Writer, r *results) error {
	switch o.Format {
	case "json":
		return writeJSON(w, r)
	case "csv":
		return csv.NewWriter(w).WriteAll(r.csv())
	}
	var names []string
	var list []eval.Scored
	for _, ref := range r.References {
		names = append(names, ref.Name)
	}
	for _, s := range r.Samplers {
		if s.Note != "" {
			s.Entrant.Name += " *"
		}
		list = append(list, s.Scored)
	}
	_, err := io.WriteString(w, (&table{eval.Table(names, list)}).String()+r.footnotes())
	return err
}

// footnotes say how a table was made.
func (r *results) footnotes() string {
	var b strings.Builder
	note := func(format string, args ...any) { fmt.Fprintf(&b, "# "+format+"\n", args...) }
	if r.Interrupted {
		note("incomplete: the run ended before all samplers were done")
	}
	for _, s := range r.Samplers {
		if s.Note != "" {
			note("* %s", s.Note)
		}
	}
	for _, s := range r.Samplers {
		note("%s: %s; acceptance %s, hops %s", s.Sampler, options(s.Settings.SamplerOptions, ", "), s.Acceptance.Text(2), s.Hops.Text(2))
	}
	if len(r.Samplers) > 0 {
		s := r.Samplers[0].Settings
		kept := fmt.Sprintf("the best %d of the sentences where chains end", s.Top)
		if r.Keep == eval.KeepVisited {
			kept = fmt.Sprintf("the best %d distinct sentences of all visited", s.Top)
		}
		note("%d sentences, each with %d chains of %d steps after %d of warm-up; %s are scored", r.Task.Sentences, s.Chains, s.Steps, s.Warmup, kept)
		if s.Warmup > 0 {
			note("published runs have 50 steps in all, with step sizes set beforehand")
		}
		note("%s of %s (sha256 %.12s), mask embedding %s, gradient %s, temperature %g, start %s, seed %d", s.Energy, r.Model.Name, r.Model.SHA256,
			s.MaskEmbedding, s.Gradient, s.Temperature, s.Init, r.Seed)
	}
	for _, ref := range r.References {
		note("references %s: %d sentences, %d of the task's own left out", ref.Name, ref.Sentences, ref.Removed)
	}
	if r.MixPerRef > 0 && len(r.References) > 1 {
		note("corpus BLEU: against the first %d sentences of each", r.MixPerRef)
	}
	note("gradhop %s, onnxruntime %s", r.Gradhop, r.ONNXRuntime)
	return b.String()
}

// options lists a sampler's options in a fixed order.
func options(m map[string]string, between string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return strings.Join(list, between)
}

// csv has a row for each sampler, its settings included.
func (r *results) csv() [][]string {
	var rows [][]string
	for _, s := range r.Samplers {
		names, cells := s.Columns()
		c := s.Settings
		head, row := []string{"sampler", "exact"}, []string{c.Sampler, strconv.FormatBool(c.Exact)}
		head, row = append(head, names...), append(row, cells...)
		head = append(head, "options", "energy", "mask_embedding", "gradient_form", "temperature", "init", "chains", "steps", "warmup", "top", "keep",
			"seed", "model", "model_sha256", "gradhop", "onnxruntime")
		row = append(row, options(c.SamplerOptions, ";"), c.Energy, c.MaskEmbedding, c.Gradient,
			strconv.FormatFloat(c.Temperature, 'g', -1, 64), c.Init, strconv.Itoa(c.Chains), strconv.Itoa(c.Steps), strconv.Itoa(c.Warmup),
			strconv.Itoa(c.Top), string(r.Keep), strconv.FormatUint(r.Seed, 10), r.Model.Name, r.Model.SHA256, r.Gradhop, r.ONNXRuntime)
		if rows == nil {
			rows = append(rows, head)
		}
		rows = append(rows, row)
	}
	return rows
}
