// Package prompttune is the command that finds prompts for pictures.
package prompttune

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Options are the flags of the command.
type Options struct {
	App    *app.App
	Goal   task.Goal
	Form   task.Form
	Search task.Search
	// SeedSet says that Search.Seed was given; else one is drawn.
	SeedSet bool
	Format  string // "text", "json" or "jsonl"
	Out     string // folder to make for the draws, "" for none
	Resume  string // folder of a run to go on with, "" for a new one
	// Continue goes on with the run in Out if it was begun there.
	Continue bool
	ChainIDs string // "" for all
	Report   string // file for the page, "" for none
	Every    time.Duration

	flags *pflag.FlagSet // as they were given, to be remembered; nil for none
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Search: DefaultSearch()}
	cmd := &cobra.Command{
		Use:   "prompt-tune --images FOLDER [flags]",
		Short: "Find text prompts for pictures with a CLIP",
		Long: `Find prompts that a CLIP places near a set of pictures: sample the tokens at the blanks
of a prompt from exp(beta U), where U is the mean cosine between the prompt and the
pictures, and print the best distinct prompts with their cosine.

With several targets U is a weighted sum: a set's weight is spread over its pictures, a
text counts once, and a negative weight keeps prompts away. With several models U is the
weighted mean over them; their vocabularies must be the same.

The cosine that is printed is that of the printed text, encoded again. beta may grow with
the step t, as in 0.1t.

With --out a run that was interrupted or killed goes on with --resume FOLDER, which needs
no other flag, and ends with the same draws and the same prompts as if nothing had
happened; --format jsonl lists improvements from the first on. Models and pictures must be
what they were. Of a run that is complete --resume prints the results again, and makes a
page of it with --report; a larger --steps makes it longer, and a range of beta as 1..1000
stays at its end. --top and --round-trip may change: they apply to all steps.

A run that --patience ended goes on only where a larger one is given. --time-limit is that
of one process: a run that it stopped is not complete, and goes on for as long again.

Chains do not depend on each other: --chain-ids runs some of them, and gradhop merge joins
the folders to one, whose best prompts --resume finds. --patience looks at all chains and
goes with all of them only.`,
		Example: `  gradhop prompt-tune --images pictures/ --length 8
  gradhop prompt-tune --images cats/ --images dogs/:-0.5 --template "a photo of _ _ in the snow"
  gradhop prompt-tune --target-text "a very long prompt that is to become a short one" --length 3
  gradhop prompt-tune --model ./clip-vit-base-patch32 --images pictures/ --block words.txt --out run/
  gradhop prompt-tune --resume run/ --steps 2000
  gradhop prompt-tune --images pictures/ --chain-ids 0-3 --seed 1 --out run-a/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.Usagef("argument %q: pictures are named by --images", args[0])
			}
			return o.checkFolder()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.recall(cmd.Flags()); err != nil {
				return err
			}
			o.SeedSet = cmd.Flags().Changed("seed")
			if err := Given(cmd.Flags(), &o.Form, &o.Search); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	AddGoalFlags(f, &o.Goal)
	AddFormFlags(f, &o.Form)
	AddSearchFlags(f, &o.Search)
	f.Uint64Var(&o.Search.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, json (an object) or jsonl (a line for each improvement as it is found, then the object)")
	f.StringVarP(&o.Out, "out", "o", "", "`folder` to make for the draws, which gradhop diagnose and report read and --resume goes on with")
	f.StringVar(&o.Report, "report", "", "`file` for a page about the run: pictures, prompts and their cosines, HTML in one piece")
	f.StringVar(&o.Resume, "resume", "", "go on with the run in this `folder`; all other flags are remembered")
	f.BoolVar(&o.Continue, "continue", false, "go on with the run in --out if it was begun there: the same command begins and resumes")
	f.StringVar(&o.ChainIDs, "chain-ids", "", "run just these of a larger run's chains, numbered from 0: `LIST` as 0-3,7")
	f.DurationVar(&o.Every, "checkpoint-every", 0, "`time` between checkpoints of --out (default: 30s, or fifty times what one takes)")
	app.SamplerFlags(f, &o.Search.Options)
	complete(cmd)
	return cmd
}

// complete tells the shell what flags may be set to.
func complete(cmd *cobra.Command) {
	for flag, list := range map[string][]string{
		"sampler": samplers.Names(), "tokens": task.Choices(), "format": {"text", "json", "jsonl"},
	} {
		// The only error is a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return models.CLIPs(), cobra.ShellCompDirectiveFilterDirs
	})
}
