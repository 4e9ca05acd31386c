package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/eval"
	"github.com/gradhop/gradhop/tasks/infill"
)

// infillOptions are the flags of eval infill.
type infillOptions struct {
	output
	energy app.Energy
	eval.InfillOptions
	samplers   []string
	draw       infill.DrawOptions // for all samplers
	samplesOut string             // folder for the scored sentences, or ""
}

const infillLong = `Run several samplers on the masked sentences of a task file and print the table of
Zhang, Liu and Liu (2022): self-BLEU and unique 2- and 3-grams for diversity, corpus
BLEU against all references together for quality, and the cost.

The protocol: for every sentence, run 25 chains and score the 5 best by log-density of
the 25 sentences where they end. Published runs have 50 steps in all, with step sizes
tuned by hand. Here --steps 50 follow --warmup 50, which replaces that tuning; all
samplers make both. For 50 steps in all, give --warmup 0 and a --step-size.

The task file is a JSON array of objects with gt_sentence, sentence (with [MASK]) and
infill_pos. References that are one of its original sentences are left out, as in
published evaluations of this task. The scored sentences are lower-cased and split at
white space.

A sampler may carry options of its own, as in dmala:step-size=0.5; options given as flags
go to every sampler that has them.

The column seconds is the time of the steps alone. The column sequences counts those that
went through the model: one for each blank of a state under pll, one for each state under
mrf, one for each conditional, and none for a state that is cached from an earlier step of
the same sampler.`

// newInfill returns the command eval infill.
func newInfill(a *app.App) *cobra.Command {
	o := &infillOptions{output: output{app: a}}
	return o.command()
}

func (o *infillOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "infill [flags] --task task.json --refs refs.txt",
		Short: "Compare samplers on masked sentences by the protocol of papers",
		Long:  infillLong,
		Example: `  gradhop eval infill --task infilling_task.json --refs tbc.txt --refs wiki103.txt --seed 1
  gradhop eval infill --task task.json --refs refs.txt --samplers dmala --format csv --samples-out samples`,
		Args: app.NoArgs("the task file is given by --task"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			app.Seed(cmd.Flags(), &o.draw.Seed)
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Task, "task", "", "JSON `file` of masked sentences")
	refsFlags(cmd, &o.References, &o.Mix, 0, "compute the corpus BLEU against")
	f.BoolVar(&o.Originals, "keep-originals", false, "keep the task's original sentences among the references")
	f.StringSliceVar(&o.samplers, "samplers", []string{"gibbs-model", "gwg", "dula", "dmala"}, "samplers to compare, `names` separated by commas; gradhop samplers lists them")
	o.Keep = eval.KeepLast
	app.Choice(cmd, &o.Keep, "keep", "sentences to choose the best from: the chains' last ones, as published, or all distinct ones, warm-up included", string(eval.KeepLast), string(eval.KeepVisited))
	app.Int(f, &o.Top, "top", 5, 1, "`number` of sentences to score for each sentence of the task; see --keep")
	o.energy.AddFlags(cmd)
	app.Int(f, &o.draw.Chains, "chains", 25, 1, "`number` of chains, all in one batch")
	app.Int(f, &o.draw.Steps, "steps", 50, 0, "`number` of steps after warm-up")
	app.Int(f, &o.draw.Warmup, "warmup", 50, 0, "`number` of tuning steps before")
	o.draw.Init = infill.StartMask
	app.Choice(cmd, &o.draw.Init, "init", "where chains start: at the fillings that a search finds, at draws from the prediction with all blanks masked, at its most probable words, or at random", "search", "mask", "argmax", "random")
	f.BoolVar(&o.Words.Pieces, "pieces", false, `fill in pieces too, such as "##ing"`)
	app.SeedFlag(f, &o.draw.Seed)
	o.addFlags(cmd)
	f.StringVar(&o.samplesOut, "samples-out", "", "`folder` for the scored sentences, one file SAMPLER.txt each, for eval text")
	app.SamplerFlags(f, &o.draw.Options)
	app.Complete(cmd, "samplers", samplers.Names()...)
	return cmd
}

// prepare checks the settings and assigns the options to samplers.
func (o *infillOptions) prepare() error {
	if o.Task == "" {
		return app.Usagef("no task: give a file with --task")
	}
	if err := checkRefs(o.References); err != nil {
		return err
	}
	list, err := entrants(o.samplers, o.draw.Options)
	if err != nil {
		return err
	}
	for _, e := range list {
		draw := o.draw
		draw.Sampler, draw.Options = e.reg.Name, e.set
		o.Entrants = append(o.Entrants, eval.Entrant{Name: e.name, Draw: draw})
	}
	if err := o.energy.Check(); err != nil {
		return err
	}
	o.Model, o.Energy, o.Hub, o.Version = o.energy.Model, o.energy.Options, o.app.Hub(), app.Version()
	o.Energy.Runtime = o.app.Runtime()
	return nil
}

// run compares the samplers. If it ends early, it prints the finished ones.
func (o *infillOptions) run(ctx context.Context) error {
	if err := o.prepare(); err != nil {
		return err
	}
	bar := o.app.NewBar()
	o.Begun = func() error {
		o.app.Graceful()
		if o.samplesOut == "" {
			return nil
		}
		if err := os.MkdirAll(o.samplesOut, 0o777); err != nil {
			return &app.OutputError{Path: o.samplesOut, Before: true, Err: err}
		}
		return nil
	}
	o.Progress = func(p eval.Progress) {
		bar.Show(p.Sampler, int64(p.Sentence*p.StepsOf+p.Steps), int64(p.Of*p.StepsOf), fmt.Sprintf("sentence %d of %d", p.Sentence+1, p.Of))
	}
	o.Done = o.save
	return o.output.run(func() (*table, error) {
		defer bar.Clear()
		r, err := eval.Infill(ctx, o.InfillOptions)
		if r == nil {
			return nil, err
		}
		return &table{r, r.Rows, func() string { return infillText(r) }}, err
	})
}

// save writes the sentences of a sampler to --samples-out.
func (o *infillOptions) save(s eval.Scored) error {
	if o.samplesOut == "" {
		return nil
	}
	out, err := o.app.Create(filepath.Join(o.samplesOut, s.Entrant.Name+".txt"))
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

// infillText returns the table with notes on the settings.
func infillText(r *eval.InfillResult) string {
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
	var n app.Notes
	if r.Interrupted {
		n.Add("incomplete: the run ended before all samplers were done")
	}
	for _, s := range r.Samplers {
		if s.Note != "" {
			n.Add("* %s", s.Note)
		}
	}
	for _, s := range r.Samplers {
		n.Add("%s: %s; acceptance %s, hops %s", s.Sampler, eval.ListSettings(s.Settings.SamplerOptions, ", "), s.Acceptance.Text(2), s.Hops.Text(2))
	}
	s := r.Samplers[0].Settings
	kept := fmt.Sprintf("the best %d of the sentences where chains end", s.Top)
	if r.Keep == eval.KeepVisited {
		kept = fmt.Sprintf("the best %d distinct sentences of all visited", s.Top)
	}
	n.Add("%d sentences, each with %d chains of %d steps after %d of warm-up; %s are scored", r.Task.Sentences, s.Chains, s.Steps, s.Warmup, kept)
	if s.Warmup > 0 {
		n.Add("published runs have 50 steps in all, with step sizes set beforehand")
	}
	n.Add("%s of %s, mask embedding %s, gradient %s, temperature %g, start %s, seed %d", s.Energy, r.Model,
		s.MaskEmbedding, s.Gradient, s.Temperature, s.Init, r.Seed)
	for _, ref := range r.References {
		n.Add("references %s: %d sentences, %d of the task's own left out", ref.Name, ref.Sentences, ref.Removed)
	}
	if r.MixPerRef > 0 && len(r.References) > 1 {
		n.Add("corpus BLEU: against the first %d sentences of each", r.MixPerRef)
	}
	n.Add("gradhop %s, onnxruntime %s", r.Gradhop, r.ONNXRuntime)
	return app.Aligned(eval.Table(names, list)) + n.String()
}
