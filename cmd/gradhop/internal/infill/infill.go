// Package infill is the command that fills the blanks of texts.
package infill

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
)

// Options are the flags and arguments of the command.
type Options struct {
	App    *app.App
	Energy run.Energy
	Chains run.Chains
	// Text is the argument; File names a file of texts, one a line, "-" for standard
	// input. One of the two is set.
	Text, File string
	// SeedSet says that Chains.Seed was given; else one is drawn.
	SeedSet bool
	Format  string // "text", "json" or "jsonl"
	Out     string
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Energy: run.DefaultEnergy(), Chains: run.DefaultChains()}
	cmd := &cobra.Command{
		Use:   `infill [flags] "text with [MASK]"`,
		Short: "Fill the blanks of a text with a masked language model",
		Long: `Fill the blanks of a text: sample words for every [MASK] together from an energy
that a masked language model defines, and print the best distinct sentences with
their log-density.

The text is the argument, or the lines of --file, or the lines of standard input.
Each line of a file is run as if it were alone, with the same seed. Empty lines are
skipped; a line that fails is reported, the others go on, and the exit code is 1.

Energies, over the fillings of all blanks (in nats, not normalised):
  pll      sum over blanks of the log-probability of its word, with this blank
           masked and the others filled
  pll-raw  the same with the model's raw scores
  mrf      sum over blanks of the raw score of its word, with every blank filled`,
		Example: `  gradhop infill "he had not , after all , [MASK] me the chance but [MASK] abandoned me [MASK] ."
  gradhop infill --sampler gibbs --steps 200 --top 10 "the [MASK] sat by the [MASK] ."
  gradhop infill --file sentences.txt --format jsonl --seed 1 --out filled.jsonl
  gradhop infill --model ./bert-base-uncased --energy mrf "paris is the [MASK] of france ."`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return app.Usagef("%d arguments; the text is one: put it in quotes", len(args))
			case len(args) == 1 && o.File != "":
				return app.Usagef("a text and --file are given; one of them is wanted")
			case len(args) == 0 && o.File == "" && a.InTerminal:
				return app.Usagef(`no text: give one as argument, --file, or lines on standard input`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Text = args[0]
			} else if o.File == "" {
				o.File = "-"
			}
			o.SeedSet = cmd.Flags().Changed("seed")
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.File, "file", "f", "", "`file` of texts, one a line; - is standard input")
	o.Energy.AddFlags(f)
	o.Chains.AddFlags(f)
	f.Uint64Var(&o.Chains.Seed, "seed", 0, "seed of all random numbers (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, json (an object; an array for a file) or jsonl (an object a line)")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	completions(cmd)
	return cmd
}

// Run does what the options say. Errors: *app.Error, *app.OutputError,
// *app.Error where some lines of a file failed, or those of package run.
func Run(ctx context.Context, o *Options) (err error) {
	print, err := newPrinter(o)
	if err != nil {
		return err
	}
	if err := o.Chains.Check(); err != nil {
		return err
	}
	texts, err := o.texts()
	if err != nil {
		return err
	}
	defer texts.close()
	if !o.SeedSet {
		o.Chains.Seed = app.RandomSeed()
	}
	out, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	r, err := run.Open(ctx, o.Energy, o.App.Hub(), o.App.Runtime())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	print.begin(out, r)
	err = o.runAll(ctx, r, texts, print)
	if err != nil && print.printed == 0 {
		return err
	}
	// What was done is kept, also when the run was interrupted or broke off.
	if e := print.end(); e != nil {
		return e
	}
	if e := out.Commit(); e != nil {
		return e
	}
	return err
}
