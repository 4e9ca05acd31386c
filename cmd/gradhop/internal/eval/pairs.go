package eval

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/tasks/eval"
)

// PairsOptions are the flags and the argument of eval pairs.
type PairsOptions struct {
	App    *app.App
	File   string
	Energy run.Energy
	Format string
	Out    string
}

// NewPairs returns the command eval pairs. runF replaces the run in tests of flags; nil
// means the real one.
func NewPairs(a *app.App, runF func(context.Context, *PairsOptions) error) *cobra.Command {
	o := &PairsOptions{App: a, Energy: run.DefaultEnergy()}
	cmd := &cobra.Command{
		Use:   "pairs [flags] FILE",
		Short: "Count the pairs of sentences of which a model prefers the good one",
		Long: `Score pairs of a good and a bad sentence with a masked language model, and print for each
category the share of pairs whose good sentence has the higher log-density.

FILE has a pair on each line: the good sentence, the bad one, and optionally a category,
with tabs between them; or a JSON object with sentence_good, sentence_bad and UID, as the
files of BLiMP have them. - is standard input.`,
		Example: `  gradhop eval pairs pairs.tsv
  cat blimp/*.jsonl | gradhop eval pairs - --format csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return app.Usagef("%d arguments; want one file of pairs, or - for standard input", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return RunPairs(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Energy.AddModelFlags(f)
	f.StringVar(&o.Format, "format", "text", "text, csv or json")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	completeFormat(cmd)
	return cmd
}

// RunPairs does what the options say.
func RunPairs(ctx context.Context, o *PairsOptions) (err error) {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	pairs, err := eval.ReadPairs(o.File, o.App.In)
	if err != nil {
		return err
	}
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
	bar := o.App.NewBar()
	defer bar.Clear()
	r, err := eval.Pairs(ctx, m, o.File, pairs, func(done int) {
		bar.Show("scoring", int64(done), int64(len(pairs)), fmt.Sprintf("%d of %d pairs", done, len(pairs)))
	})
	if err != nil {
		return err
	}
	switch o.Format {
	case "json":
		err = writeJSON(out, struct {
			Gradhop string      `json:"gradhop"`
			Model   run.ModelID `json:"model"`
			Energy  string      `json:"energy"`
			*eval.PairsResult
		}{app.Version(), run.Identify(m.Source), o.Energy.Form, r})
	case "csv":
		err = csv.NewWriter(out).WriteAll(eval.PairsTable(r))
	default:
		id := run.Identify(m.Source)
		_, err = io.WriteString(out, (&table{eval.PairsTable(r)}).String()+fmt.Sprintf("# %s of %s (sha256 %.12s)\n", o.Energy.Form, id.Name, id.SHA256))
	}
	if err != nil {
		return err
	}
	return out.Commit()
}
