package eval

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/prompttune"
)

// PromptTuneOptions are the flags of eval prompt-tune.
type PromptTuneOptions struct {
	App      *app.App
	Goal     task.Goal
	Form     task.Form // its Length is set from Lengths
	Lengths  []int
	Repeats  int
	Samplers []string
	Search   task.Search // what the samplers have in common
	SeedSet  bool
	Format   string
	Out      string
}

// NewPromptTune returns the command eval prompt-tune. runF replaces the run in tests of
// flags; nil means the real one.
func NewPromptTune(a *app.App, runF func(context.Context, *PromptTuneOptions) error) *cobra.Command {
	o := &PromptTuneOptions{
		App: a, Form: task.Form{}, Search: prompttune.DefaultSearch(),
		Lengths: []int{4, 8, 16, 32}, Repeats: 10, Samplers: []string{"sgdld", "sgdld:no-cache", "pez", "dmala"},
	}
	// The paper ends at beta 300 too, after three times as many steps.
	o.Search.ImageBatch, o.Search.Steps, o.Search.Beta = 1, 1000, "0.3t"
	cmd := &cobra.Command{
		Use:   "prompt-tune --images FOLDER [flags]",
		Short: "Compare samplers at finding prompts for pictures, as the SGDLD paper does",
		Long: `Look for prompts of several lengths with several samplers and print, as table 3 of Sun et
al. (2023) does, mean and standard deviation over the repeats of the best cosine found.

Every repeat is a chain of its own from random tokens; all make --steps steps, each with
one evaluation of the gradient. A prompt counts with the cosine of its text, encoded
again; texts that must be evaluated for that alone are counted apart, as "scored".

A sampler may carry options of its own, as in sgdld:no-cache or sgdld:batch=4:jump=single;
others are given to every sampler that has them. --image-batch goes to sgdld.`,
		Example: `  gradhop eval prompt-tune --images pictures/ --lengths 4,8,16,32 --repeats 10 --seed 1
  gradhop eval prompt-tune --images pictures/ --samplers dmala,gwg --lengths 8 --steps 3000 --format csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.Usagef("argument %q: pictures are named by --images", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.SeedSet = cmd.Flags().Changed("seed")
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return RunPromptTune(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags())
	completeFormat(cmd)
	return cmd
}

func (o *PromptTuneOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	prompttune.AddGoalFlags(f, &o.Goal)
	f.IntSliceVarP(&o.Lengths, "lengths", "l", o.Lengths, "numbers of blanks of the prompts, `numbers` with commas")
	f.IntVar(&o.Repeats, "repeats", o.Repeats, "`number` of runs of each sampler at each length")
	f.StringSliceVar(&o.Samplers, "samplers", o.Samplers, "samplers to compare, `names` with commas, each with options of its own behind colons")
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	rest.SortFlags = false
	prompttune.AddFormFlags(rest, &o.Form)
	prompttune.AddSearchFlags(rest, &o.Search)
	rest.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "length", "template", "sampler", "chains", "top", "patience", "time-limit":
			return // the comparison sets them, or it would no longer be one
		case "image-batch":
			flag.Usage = "pictures and texts that each step of sgdld draws, a `number`; 0 for all, the exact mean, where its cache has no use"
		}
		f.AddFlag(flag)
	})
	f.Uint64Var(&o.Search.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, csv or json")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	app.SamplerFlags(f, &o.Search.Options)
}
