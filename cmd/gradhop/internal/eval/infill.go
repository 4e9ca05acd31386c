package eval

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
)

// InfillOptions are the flags of eval infill.
type InfillOptions struct {
	App      *app.App
	Task     string
	Refs     []string
	Mix      int // sentences of each reference file in the mixture; 0 means all
	Samplers []string
	Energy   run.Energy
	Chains   run.Chains // its Sampler is set from Samplers
	Keep     Keep
	// Originals leaves the task's own sentences among the references.
	Originals bool
	// SeedSet says that Chains.Seed was given; else one is drawn.
	SeedSet    bool
	Format     string
	Out        string
	SamplesOut string // folder for the sentences that are scored, or ""
}

// NewInfill returns the command eval infill. runF replaces the run in tests of flags;
// nil means the real one.
func NewInfill(a *app.App, runF func(context.Context, *InfillOptions) error) *cobra.Command {
	o := &InfillOptions{
		App: a, Samplers: []string{"gibbs-model", "gwg", "dula", "dmala"}, Keep: KeepLast,
		Energy: run.DefaultEnergy(), Chains: run.DefaultChains(),
	}
	cmd := &cobra.Command{
		Use:   "infill [flags] --task task.json --refs refs.txt",
		Short: "Compare samplers on masked sentences by the papers' protocol",
		Long: `Run several samplers on the masked sentences of a task file and print the table of
Zhang, Liu and Liu (2022): self-BLEU and unique 2- and 3-grams for diversity, corpus
BLEU against all references together for quality, and what it cost.

The protocol: of every sentence, 25 chains run and the 5 best by log-density of the 25
sentences where they end are scored. Published runs have 50 steps in all, with step
sizes tuned by hand beforehand. Here --steps 50 follow --warmup 50, which takes the
place of that tuning, and every sampler makes both, whether or not it adapts; for 50
steps in all, give --warmup 0 and a --step-size.

The task file is a JSON array of objects with gt_sentence, sentence (with [MASK]) and
infill_pos. References that are one of its original sentences are left out, as in
published evaluations of this task: with them, the metrics would mostly say that the
words around the blanks are there. (eval text knows of no task and leaves nothing
out.) The scored sentences are lower-cased and split at white space.

seconds are of steps alone; sequences are those that went through the model: one for
each blank of a state under pll, one a state under mrf, one a conditional, and none for
a state that is still remembered from an earlier step of the same sampler.`,
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
		"samplers": samplers.Names(), "keep": {string(KeepLast), string(KeepVisited)}, "energy": {"pll", "pll-raw", "mrf"},
		"mask-embedding": {"mask", "zero"}, "gradient": {"exact", "direct"}, "init": {"mask", "argmax", "random"},
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
	f.StringVar((*string)(&o.Keep), "keep", string(o.Keep), "what --top are the best of: last (the sentences where chains end, as published) or visited (all distinct ones, warm-up included, as in gradhop infill)")
	o.Energy.AddFlags(f)
	// What chains have in common; which sampler is set by --samplers.
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SortFlags = false
	o.Chains.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "sampler":
			return
		case "top":
			flag.Usage = "sentences to score of each task sentence, see --keep"
		}
		f.AddFlag(flag)
	})
	f.Uint64Var(&o.Chains.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, csv or json")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	f.StringVar(&o.SamplesOut, "samples-out", "", "`folder` for the scored sentences, a file SAMPLER.txt each, as eval text reads them")
}
