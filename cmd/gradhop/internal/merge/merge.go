// Package merge implements the command that joins runs of different chains.
package merge

import (
	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/tasks/corpus"
	"github.com/gradhop/gradhop/tasks/prompttune"
	"github.com/gradhop/gradhop/tasks/sample"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	var out string
	partial := false
	cmd := &cobra.Command{
		Use:   "merge RUN... --out FOLDER",
		Short: "Join runs of different chains into one",
		Long: `Join runs that gradhop sample or gradhop prompt-tune made with --chain-ids into one
folder, with the same bytes in its draws as if one process had run all chains. The runs
must have the same model, seed and settings, be at the same step, and together have
the chains from 0 on without a gap or an overlap. The command that made them continues
the folder with --resume FOLDER; prompt-tune then prints the best prompts of all chains.

Runs over a corpus, of --file with --out and --shard, are joined to the folder of one run without
--shard. Every part must be there and complete; what is missing is named.`,
		Example: `  gradhop sample ebm.onnx --space binary:784 --seed 1 --chains 64 --shard 0/2 --out run-a/
  gradhop sample ebm.onnx --space binary:784 --seed 1 --chains 64 --shard 1/2 --out run-b/
  gradhop merge run-a/ run-b/ --out run/
  gradhop merge filled-*/ --out filled/
  gradhop merge prompts-a/ prompts-b/ --out prompts/ && gradhop prompt-tune --resume prompts/`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return app.Usagef("no run to merge")
			case out == "":
				return app.Usagef("no folder for the joint run: give --out")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if corpus.Begun(args[0]) {
				return joinCorpus(a, out, args, partial)
			}
			search, err := join(out, args, partial)
			if err != nil {
				return app.Flagged(err)
			}
			r, err := store.Open(out)
			if err != nil {
				return err
			}
			a.Logf("%s: %d chains of %d run(s)", out, r.Chains(), len(args))
			if search {
				a.Logf("gradhop prompt-tune --resume %s prints the best prompts of all chains, and writes them to %s", out, prompttune.ResultsFile)
			}
			if r.Draws(store.Sampling) == 0 {
				return nil
			}
			t, err := store.Diagnose(r, store.TableOptions{})
			if err != nil {
				return err
			}
			return t.WriteText(a.Out)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "new `folder` for the joint run")
	cmd.Flags().BoolVar(&partial, "partial", false, "allow missing chain numbers between 0 and the last one")
	a.Declare(cmd, app.Always("out", "partial"))
	return cmd
}

// join merges runs, and reports whether they are runs of prompt-tune.
func join(out string, parts []string, partial bool) (search bool, err error) {
	if _, err := prompttune.Saved(parts[0]); err == nil {
		return true, prompttune.Merge(out, parts, partial)
	}
	_, err = sample.Merge(out, parts, partial)
	return false, err
}

func joinCorpus(a *app.App, out string, parts []string, partial bool) error {
	if partial {
		return app.Usagef("--partial has no effect on runs over a corpus")
	}
	s, err := app.MergeCorpus(out, parts)
	if err == nil {
		a.Logf("%s: %d lines of %d run(s), %d failed", out, s.Records, len(parts), s.Failed)
	}
	return err
}
