// Package infill is the command that fills the blanks of texts.
package infill

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// Options are the flags and arguments of the command.
type Options struct {
	App    *app.App
	Energy run.Energy
	Words  task.TextOptions
	// Allow and Block are lists of words with commas between them.
	Allow, Block []string
	Search       task.SearchOptions
	Rank         string // "logp" or "per-word"
	// Draws is the number of sentences to draw; 0 means to search for the best.
	Draws    int
	Sampling task.DrawOptions
	// Text is the argument; File names a file of texts, one a line, "-" for standard
	// input. One of the two is set.
	Text, File string
	// SeedSet says that Sampling.Seed was given; else one is drawn.
	SeedSet bool
	Format  string // "text", "json" or "jsonl"
	Out     string
}

const long = `Fill every [MASK] of a text with words that a masked language model finds probable.

Without --draws, search for the fillings with the highest log-density and print the best
sentences. A search gives the same sentences every time, unless it reaches its time limit.
With --draws, draw sentences at random in proportion to their density and say whether the
chains have mixed.

The text is the argument, or the lines of --file, or the lines of standard input. Each line
is computed as if it were alone. Empty lines are skipped. A line that fails is reported and
the others go on; the exit code is then 1.

The log-density of a filling, in nats and not normalised, is (--energy)
  pll      the sum over blanks of the log-probability of its word, with this blank masked
           and the others filled
  pll-raw  the same with the model's raw scores
  mrf      the sum over blanks of the raw score of its word, with all blanks filled

Samplers have options of their own, which are flags too.`

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Energy: run.DefaultEnergy(), Sampling: task.DefaultDraws(0)}
	cmd := &cobra.Command{
		Use:   `infill [flags] "text with [MASK]"`,
		Short: "Fill the blanks of a text with a masked language model",
		Long:  long,
		Example: `  gradhop infill "she [MASK] the door and [MASK] into the room."
  gradhop infill --no-punctuation --no-repeat --top 10 "The [MASK] sat by the [MASK]."
  gradhop infill --draws 20 --temperature 0.7 --seed 1 "He was [MASK] tired to [MASK]."
  gradhop infill --file sentences.txt --format jsonl --out filled.jsonl
  gradhop infill --model ./bert-base-uncased "Paris is the [MASK] of France."`,
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
			if !cmd.Flags().Changed("warmup") {
				o.Sampling.Warmup = task.DefaultDraws(o.Draws).Warmup
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	completions(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.File, "file", "f", "", "`file` of texts, one a line; - is standard input")
	f.IntVar(&o.Search.Top, "top", 5, "number of sentences to print")
	f.StringVar(&o.Rank, "rank", "logp", "order of the sentences: logp, or per-word (logp divided by the number of words filled in)")
	f.BoolVar(&o.Words.NoPunctuation, "no-punctuation", false, "fill in no punctuation")
	f.BoolVar(&o.Words.NoRepeat, "no-repeat", false, "fill in no word twice, and none that stands beside its blank")
	f.BoolVar(&o.Words.Pieces, "pieces", false, `fill in pieces too, such as "##ing", which continue the word before them`)
	f.StringSliceVar(&o.Allow, "allow", nil, "`words` to fill in, with commas between them; each must be one token (default: all)")
	f.StringSliceVar(&o.Block, "block", nil, "`words` not to fill in")
	f.DurationVar(&o.Search.TimeLimit, "time-limit", 20*time.Second, "stop the search of a text after this `time` and print the best so far; 0 for no limit")
	f.IntVar(&o.Search.Beam, "beam", 0, "width of the beams of the search (default: 160, less for more than 25 blanks)")
	o.Energy.AddFlags(f)
	f.IntVar(&o.Draws, "draws", 0, "draw this many sentences at random instead of searching for the best")
	f.StringVar(&o.Sampling.Sampler, "sampler", o.Sampling.Sampler, "sampler `name` for --draws; see gradhop samplers")
	f.IntVar(&o.Sampling.Chains, "chains", o.Sampling.Chains, "chains for --draws, which run as one batch")
	f.IntVar(&o.Sampling.Warmup, "warmup", 0, "draws of each chain that are dropped, in which the sampler is tuned (default: a quarter of the draws of a chain, at least 10)")
	f.StringVar((*string)(&o.Sampling.Init), "init", string(o.Sampling.Init), "where chains start: search (the fillings that a search finds), mask (drawn from the prediction with all blanks masked), argmax (its most probable words) or random")
	f.Uint64Var(&o.Sampling.Seed, "seed", 0, "seed of --draws (default: a random one, which is printed)")
	f.StringVar(&o.Format, "format", "text", "text, json (an object; an array for a file) or jsonl (an object a line)")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	app.SamplerFlags(f, &o.Sampling.Options)
}

// check returns an error for settings that no text can make right, and works out the rest.
func (o *Options) check() error {
	o.Words.Allow, o.Words.Block = o.Allow, o.Block
	switch {
	case o.Search.Top < 1:
		return app.Usagef("--top %d: want 1 or more", o.Search.Top)
	case o.Rank != "logp" && o.Rank != "per-word":
		return app.Usagef("--rank %q: want logp or per-word", o.Rank)
	case o.Search.Beam < 0 || o.Search.TimeLimit < 0:
		return app.Usagef("--beam and --time-limit: want 0 or more")
	case o.Draws < 0:
		return app.Usagef("--draws %d: want 0 or more", o.Draws)
	case o.Sampling.Chains < 1:
		return app.Usagef("--chains %d: want 1 or more", o.Sampling.Chains)
	}
	o.Search.PerWord = o.Rank == "per-word"
	if o.Draws > 0 {
		o.Sampling.Steps = (o.Draws + o.Sampling.Chains - 1) / o.Sampling.Chains
		if !o.SeedSet {
			o.Sampling.Seed = app.RandomSeed()
		}
		return o.Sampling.Check()
	}
	if len(o.Sampling.Options) > 0 {
		return app.Usagef("options of a sampler are for --draws")
	}
	return nil
}

// Run does what the options say. Errors: *app.Error, *app.OutputError, or those of
// package infill.
func Run(ctx context.Context, o *Options) (err error) {
	print, err := newPrinter(o)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	texts, err := app.OpenLines(o.App, o.Text, o.File)
	if err != nil {
		return err
	}
	defer texts.Close()
	out, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	m, err := o.Energy.Open(ctx, o.App)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	print.begin(out, m)
	defer o.App.Graceful()()
	err = o.runAll(ctx, m, texts, print)
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
