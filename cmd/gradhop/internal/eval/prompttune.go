package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/prompttune"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/tasks/eval"
)

// promptOptions are the flags of eval prompt-tune.
type promptOptions struct {
	output
	eval.PromptOptions
	repeats  int
	samplers []string
}

// newPromptTune returns the command eval prompt-tune.
func newPromptTune(a *app.App) *cobra.Command {
	o := &promptOptions{output: output{app: a}}
	return o.command()
}

func (o *promptOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompt-tune --images FOLDER [flags]",
		Short: "Compare samplers at finding prompts for pictures, as the SGDLD paper does",
		Long: `Look for prompts of several lengths with several samplers and print, as table 3 of Sun et
al. (2023) does, mean and standard deviation over the repeats of the best cosine found.

Every repeat is a chain of its own from random tokens; each makes --steps steps, with one
evaluation of the gradient a step. A prompt counts with the cosine of its text, encoded
again; texts that must be evaluated only for that are counted separately, as "scored".

A sampler may carry options of its own, as in sgdld:no-cache or sgdld:batch=4:jump=single;
options given as flags go to every sampler that has them. --image-batch goes to sgdld and pez.`,
		Example: `  gradhop eval prompt-tune --images pictures/ --lengths 4,8,16,32 --repeats 10 --seed 1
  gradhop eval prompt-tune --images pictures/ --samplers dmala,gwg --lengths 8 --steps 3000 --format csv`,
		Args: app.NoArgs("pictures are named by --images"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			app.Seed(cmd.Flags(), &o.Search.Seed)
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	prompttune.AddGoalFlags(cmd, &o.Goal)
	f.IntSliceVarP(&o.Lengths, "lengths", "l", []int{4, 8, 16, 32}, "lengths of the prompts in blanks, `numbers` separated by commas")
	app.Int(f, &o.repeats, "repeats", 10, 1, "`number` of runs of each sampler at each length")
	f.StringSliceVar(&o.samplers, "samplers", []string{"sgdld", "sgdld:no-cache", "pez", "dmala"}, "samplers to compare, `names` separated by commas; gradhop samplers lists them")
	// The rest are flags of prompt-tune, except those that the comparison sets.
	rest := &cobra.Command{}
	rest.Flags().SortFlags = false
	// The paper ends at beta 300 too, after three times as many steps.
	o.Search.ImageBatch, o.Search.Steps, o.Search.Beta, o.Search.Top = 1, 1000, "0.3t", 1
	prompttune.AddFormFlags(rest, &o.Form)
	prompttune.AddSearchFlags(rest, &o.Search)
	rest.Flags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "length", "template", "sampler", "chains", "top", "patience", "time-limit":
			return
		case "image-batch":
			flag.Usage = "`number` of targets that each step of sgdld and pez draws; 0 for all, the exact mean, for which the cache of sgdld has no use"
		case "steps":
			flag.Usage = "`number` of steps after warm-up"
		case "beta":
			flag.Usage = "inverse temperature: a number, a `SCHEDULE` in the step t as 0.1t, or a range over all steps as 1..1000"
		}
		f.AddFlag(flag)
	})
	app.SeedFlag(f, &o.Search.Seed)
	o.addFlags(cmd)
	app.SamplerFlags(f, &o.Search.Options)
	app.Complete(cmd, "samplers", samplers.Names()...)
	return cmd
}

// prepare checks the settings and assigns the options to samplers. --image-batch goes to samplers with
// minibatches.
func (o *promptOptions) prepare() error {
	if len(o.Lengths) == 0 {
		return app.Usagef("no length: name at least one with --lengths")
	}
	for i, n := range o.Lengths {
		if n < 1 {
			return app.Usagef("--lengths %d: want 1 or more", n)
		}
		if slices.Contains(o.Lengths[:i], n) {
			return app.Usagef("--lengths names %d twice", n)
		}
	}
	list, err := entrants(o.samplers, o.Search.Options)
	if err != nil {
		return err
	}
	o.Search.Chains = o.repeats
	for _, e := range list {
		s := o.Search
		s.Sampler, s.Options = e.reg.Name, e.set
		if !slices.ContainsFunc(e.reg.Flags, func(f samplers.Flag) bool { return f.Name == "batch" }) || e.set["batch"] != "" {
			s.ImageBatch = 0
		}
		if err := s.Try(max(1, len(o.Goal.Models))); err != nil {
			return err
		}
		o.Entrants = append(o.Entrants, eval.PromptEntrant{Name: e.name, Search: s})
	}
	o.Goal.Runtime, o.Goal.Hub, o.Version = o.app.Runtime(), o.app.Hub(), app.Version()
	return nil
}

// run compares the samplers. If it ends early, it prints the finished searches.
func (o *promptOptions) run(ctx context.Context) error {
	if err := o.prepare(); err != nil {
		return err
	}
	bar := o.app.NewBar()
	o.Log, o.Begun = o.app.Logf, o.app.Graceful
	o.Progress = func(sampler string, length int, step, steps int64) {
		bar.Show(fmt.Sprintf("%s, %d blanks", sampler, length), step, steps, fmt.Sprintf("step %d", step))
	}
	return o.output.run(func() (*table, error) {
		defer bar.Clear()
		r, err := eval.Prompts(ctx, o.PromptOptions)
		if r == nil {
			return nil, err
		}
		return &table{r, r.Rows, func() string { return promptText(r) }}, err
	})
}

// promptText returns table 3 of the paper, with the cost and notes on the settings.
func promptText(r *eval.PromptResult) string {
	var b strings.Builder
	b.WriteString(app.Aligned(r.Table("best cosine", func(s *eval.PromptSearch) string {
		if s.SD != s.SD {
			return s.Mean.Text(4)
		}
		return s.Mean.Text(4) + " ± " + s.SD.Text(4)
	})) + "\n")
	b.WriteString(app.Aligned(r.Table("evaluations with gradient + texts scored, of all repeats", func(s *eval.PromptSearch) string {
		return fmt.Sprintf("%d + %d", s.Evaluations.Gradient, s.Scored+s.Evaluations.Density+s.Evaluations.Conditional)
	})) + "\n")
	b.WriteString(app.Aligned(r.Table("seconds of all repeats", func(s *eval.PromptSearch) string { return diag.Number(s.Seconds).Text(1) })) + "\n")
	for _, s := range r.Searches {
		if k := s.Winner(); k >= 0 {
			fmt.Fprintf(&b, "%8s  %-14s %2d  %s\n", s.Best[k].Text(4), s.Sampler, s.Length, s.Texts[k])
		}
	}
	var n app.Notes
	if r.Interrupted {
		n.Add("incomplete: the run ended before all searches were done")
	}
	n.Add("mean ± standard deviation of the best cosine of %d repeats; %d steps after %d of warm-up, beta %s, seed %d", r.Repeats, r.Steps, r.Warmup, r.Beta, r.Seed)
	for _, s := range r.Searches {
		if s.Length == r.Lengths[0] {
			n.Add("%s: %s", s.Sampler, eval.ListSettings(s.Options, ", "))
		}
	}
	for _, s := range r.Images {
		n.Add("pictures %s: %d, weight %g", s.Path, s.Used, s.Weight)
	}
	for _, t := range r.Texts {
		n.Add("text %q, weight %g", t.Text, t.Weight)
	}
	for _, m := range r.Models {
		n.Add("model %s (sha256 of the text tower %.12s), %d tokens proposed", m.Name, m.TextSHA256, r.Proposed)
	}
	n.Add("gradhop %s, onnxruntime %s", r.Gradhop, r.ONNXRuntime)
	return b.String() + n.String()
}
