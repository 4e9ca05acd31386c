// Package prompttune is the command that finds prompts for pictures.
package prompttune

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Options are the flags of the command.
type Options struct {
	App     *app.App
	Targets Targets
	Prompt  Prompt
	Search  Search
	// SeedSet says that Search.Seed was given; else one is drawn.
	SeedSet bool
	Format  string // "text", "json" or "jsonl"
	Out     string // folder for the draws, "" for none
	Report  string // file for the page, "" for none
	Every   time.Duration
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Prompt: DefaultPrompt(), Search: DefaultSearch()}
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
the step t, as in 0.1t.`,
		Example: `  gradhop prompt-tune --images pictures/ --length 8
  gradhop prompt-tune --images cats/ --images dogs/:-0.5 --template "a photo of _ _ in the snow"
  gradhop prompt-tune --target-text "a very long prompt that is to become a short one" --length 3
  gradhop prompt-tune --model ./clip-vit-base-patch32 --images pictures/ --block words.txt --out run/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.Usagef("argument %q: pictures are named by --images", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.SeedSet = cmd.Flags().Changed("seed")
			o.Search.BetaSet = cmd.Flags().Changed("beta")
			o.Prompt.LengthSet = cmd.Flags().Changed("length")
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Targets.AddFlags(f)
	o.Prompt.AddFlags(f)
	o.Search.AddFlags(f)
	f.Uint64Var(&o.Search.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, json (an object) or jsonl (a line for each improvement as it is found, then the object)")
	f.StringVarP(&o.Out, "out", "o", "", "`folder` to make for the draws, which gradhop diagnose and report read")
	f.StringVar(&o.Report, "report", "", "`file` for a page about the run: pictures, prompts and their cosines, HTML in one piece")
	f.DurationVar(&o.Every, "checkpoint-every", 0, "`time` between checkpoints of --out (default: 30s, or fifty times what one takes)")
	run.AddSamplerFlags(f, &o.Search.Options)
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
