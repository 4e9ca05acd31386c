// Package sample is the command that samples from any ONNX energy into a folder.
package sample

import (
	"context"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

type flagSet = *pflag.FlagSet

// commandName is the name of the command.
const commandName = "sample"

// Options are the flags and arguments of the command.
type Options struct {
	App *app.App
	// Model is the ONNX file.
	Model         string
	Input, Output string
	Negate        bool
	Temperature   float64
	Space         string
	Allow         string   // file, "" for every value
	Feed, Bind    []string // NAME=FILE and NAME=NUMBER
	MaxBatch      int

	Sampler       string
	Settings      samplers.Settings
	Chains        int
	ChainIDs      string
	Steps, Warmup int
	Thin          int
	Seed          uint64
	Init          string
	PoolWarmup    bool
	OnNonFinite   string // "fail" or "reject"

	Out, Resume string
	Continue    bool
	SaveWarmup  bool
	Write       []string
	Picture     string
	Every       time.Duration
	Format      string
}

// New returns the command.
func New(a *app.App) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "sample MODEL.onnx --space SPACE --out FOLDER [flags]",
		Short: "Sample from the energy that an ONNX model computes",
		Long: `Sample from exp(U), where U is what an ONNX model computes for a state: one number a
chain. Draws and statistics of every step go to a folder, as Zarr in the layout of
ArviZ's InferenceData (arviz.from_zarr opens it); summary.json holds diagnostics, and
gradhop diagnose and gradhop report read the folder.

Spaces, D being the number of sites:
  binary:D          the input takes 0 and 1
  spin:D            -1 and +1
  categorical:DxS   integer inputs take codes below S, float inputs one-hot rows
  ordinal:D:LO..HI  whole numbers

A run that was interrupted or killed goes on with --resume FOLDER, which needs no other
flag and ends with the same draws as if nothing had happened; with a larger --steps it
extends a run that was complete. Chains do not depend on each other: --chain-ids runs
some of them, and gradhop merge joins the folders.

The folder is made once the model has been evaluated at the first states: a run that
cannot begin leaves nothing behind.`,
		Example: `  gradhop sample ebm.onnx --space binary:784 --out run/
  gradhop sample potts.onnx --input x --output energy --negate --space categorical:64x21 --sampler gwg --out run/
  gradhop sample --resume run/ --steps 5000
  gradhop sample ebm.onnx --space binary:784 --seed 1 --chain-ids 0-31 --out run-a/`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return app.Usagef("%d arguments; the model is one", len(args))
			case len(args) == 0 && o.Resume == "":
				return app.Usagef("no model: name an ONNX file, or a run with --resume")
			case o.Resume != "" && o.Out != "":
				return app.Usagef("--out and --resume are given; one of them is wanted")
			case o.Continue && o.Out == "":
				return app.Usagef("--continue goes with --out; --resume needs nothing else")
			case o.Resume == "" && o.Out == "":
				return app.Usagef("no folder for the draws: give --out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Model = args[0]
			}
			if o.Continue && store.Begun(o.Out) {
				o.Resume, o.Out = o.Out, ""
			}
			if o.Resume != "" {
				if err := o.recall(cmd.Flags()); err != nil {
					return err
				}
			} else if !cmd.Flags().Changed("seed") {
				o.Seed = app.RandomSeed()
			}
			return o.run(cmd.Context(), cmd.Flags())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Input, "input", "", "`name` of the input that takes the state (default: the only one)")
	f.StringVar(&o.Output, "output", "", "`name` of the output that is the log-density (default: the only one)")
	f.BoolVar(&o.Negate, "negate", false, "the output is an energy E: sample exp(-E)")
	f.Float64Var(&o.Temperature, "temperature", 1, "divide the log-density by this `number`")
	f.StringVar(&o.Space, "space", "", "the states, a `SPACE` as above; needed")
	f.StringVar(&o.Allow, "allow", "", "values that sites may take, in a JSON `file`: one list for all, or one a site")
	f.StringArrayVar(&o.Feed, "feed", nil, "another input of the model, `NAME=FILE` with a .npy or JSON file; may be repeated")
	f.StringArrayVar(&o.Bind, "bind", nil, "size of a named dimension of the inputs, as `NAME=SIZE`; may be repeated")
	f.IntVar(&o.MaxBatch, "max-batch", 0, "largest `number` of chains that the model runs on at once, where memory is short (default: all)")
	f.StringVar(&o.Sampler, "sampler", "dmala", "`name` of the sampler; gradhop samplers lists them")
	f.IntVar(&o.Chains, "chains", 64, "`number` of chains, all in one batch")
	f.StringVar(&o.ChainIDs, "chain-ids", "", "run just these of a larger run's chains, numbered from 0: `LIST` as 0-31,40")
	f.IntVar(&o.Steps, "steps", 1000, "`number` of steps after warm-up")
	f.IntVar(&o.Warmup, "warmup", 500, "`number` of steps before, in which step sizes are adapted")
	f.IntVar(&o.Thin, "thin", 1, "keep every `N`-th step as a draw")
	f.Uint64Var(&o.Seed, "seed", 0, "`number` that all random numbers follow from (default: a random one, which is recorded)")
	f.StringVar(&o.Init, "init", "random", "where chains start: random, zeros, or the states in a `FILE` (.npy or JSON, [chain, site])")
	f.BoolVar(&o.PoolWarmup, "pool-warmup", false, "adapt one step size for all chains; they are then no longer independent, and the run cannot be split")
	f.StringVar(&o.OnNonFinite, "on-nonfinite", "fail", "what NaN or +Inf from the model does, `fail|reject`: end the run, or count as probability zero")
	f.StringVarP(&o.Out, "out", "o", "", "`folder` to make for the draws")
	f.StringVar(&o.Resume, "resume", "", "go on with the run in this `folder`; all other flags are remembered")
	f.BoolVar(&o.Continue, "continue", false, "go on with the run in --out if it was begun there: the same command begins and resumes")
	f.BoolVar(&o.SaveWarmup, "save-warmup", false, "keep the states of warm-up too")
	f.StringSliceVar(&o.Write, "write", nil, "further `FORMS` of the draws, in the folder: csv (as CmdStan has it), npz, png, or none (default: csv up to 100 sites, png for pictures)")
	f.StringVar(&o.Picture, "picture", "", "states are pictures of `HxW` or HxWxC (default: from the model's input)")
	f.DurationVar(&o.Every, "checkpoint-every", 0, "`time` between checkpoints (default: 30s, or fifty times what one takes)")
	f.StringVar(&o.Format, "format", "text", "of the summary on standard output, `text|json`")
	run.AddSamplerFlags(f, &o.Settings)
	complete(cmd)
	return cmd
}

func complete(cmd *cobra.Command) {
	for flag, list := range map[string][]string{
		"sampler": samplers.Names(), "init": {"random", "zeros"}, "on-nonfinite": {"fail", "reject"},
		"write": {"csv", "npz", "png", "none"}, "format": {"text", "json"},
	} {
		// The only error is a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveDefault))
	}
}

// run checks the flags, opens the model and runs it.
func (o *Options) run(ctx context.Context, flags flagSet) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.plan(ctx)
	if err != nil {
		return err
	}
	defer p.energy.Close()
	return p.run(ctx, flags)
}

// check returns an error for flags that no model can make right.
func (o *Options) check() error {
	switch {
	case o.Chains < 1:
		return app.Usagef("--chains %d: want 1 or more", o.Chains)
	case o.Steps < 0 || o.Warmup < 0:
		return app.Usagef("--steps %d --warmup %d: neither may be negative", o.Steps, o.Warmup)
	case o.Steps == 0:
		return app.Usagef("--steps 0: no step is a draw; want 1 or more")
	case o.Thin < 1:
		return app.Usagef("--thin %d: want 1 or more", o.Thin)
	case o.Thin > o.Steps:
		return app.Usagef("--thin %d: larger than the %d steps, so no draw is kept", o.Thin, o.Steps)
	case !(o.Temperature > 0) || math.IsInf(o.Temperature, 1):
		return app.Usagef("--temperature %g: want a number above zero", o.Temperature)
	case o.OnNonFinite != "fail" && o.OnNonFinite != "reject":
		return app.Usagef("--on-nonfinite %q: want fail or reject", o.OnNonFinite)
	case o.Format != "text" && o.Format != "json":
		return app.Usagef("--format %q: want text or json", o.Format)
	case o.Space == "":
		return app.Usagef("no --space: want %s", spaceForms)
	case o.PoolWarmup && o.ChainIDs != "":
		return app.Usagef("--pool-warmup makes chains depend on each other, so --chain-ids cannot run some of them")
	}
	for _, w := range o.Write {
		if w != "csv" && w != "npz" && w != "png" && w != "none" {
			return app.Usagef("--write %q: want csv, npz, png or none", w)
		}
	}
	return nil
}
