package eval

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/tasks/eval"
	"github.com/gradhop/gradhop/tasks/infill"
)

// pairsOptions are the flags of eval pairs.
type pairsOptions struct {
	output
	energy app.Energy
}

// newPairs returns the command eval pairs.
func newPairs(a *app.App) *cobra.Command {
	o := &pairsOptions{output: output{app: a}}
	cmd := &cobra.Command{
		Use:   "pairs [flags] FILE",
		Short: "Count the sentence pairs whose good sentence a model prefers",
		Long: `Score pairs of a good and a bad sentence with a masked language model, and print for each
category the share of pairs whose good sentence has the higher log-density.

FILE has a pair on each line: the good sentence, the bad one, and optionally a category,
separated by tabs; or a JSON object with sentence_good, sentence_bad and UID, as in the
files of BLiMP. - is standard input.`,
		Example: `  gradhop eval pairs pairs.tsv
  cat blimp/*.jsonl | gradhop eval pairs - --format csv`,
		Args: app.Args("one file of pairs, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().SortFlags = false
	o.energy.AddModelFlags(cmd)
	o.addFlags(cmd)
	a.Declare(cmd, app.Always("model", "energy", "max-batch", "format", "out", app.RuntimeFlags),
		app.Idle("with --energy mrf", func() bool { return o.energy.Form == mlm.MRF }, "mask-embedding"))
	return cmd
}

// run scores the pairs of a file.
func (o *pairsOptions) run(ctx context.Context, file string) error {
	pairs, err := eval.ReadPairs(file, o.app.In)
	if err != nil {
		return err
	}
	return o.output.run(func() (_ *table, err error) {
		m, release, err := o.energy.Open(ctx, o.app)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
		bar := o.app.NewBar()
		defer bar.Clear()
		r, err := eval.Pairs(ctx, m, file, pairs, func(done int) {
			bar.Show("scoring", int64(done), int64(len(pairs)), fmt.Sprintf("%d of %d pairs", done, len(pairs)))
		})
		if r == nil {
			return nil, err
		}
		end := ""
		if r.Interrupted {
			end = fmt.Sprintf("; interrupted: %d of %d pairs scored", r.All.Pairs, len(pairs))
		}
		result := struct {
			Gradhop string         `json:"gradhop"`
			Model   infill.ModelID `json:"model"`
			Energy  mlm.Form       `json:"energy"`
			*eval.PairsResult
		}{app.Version(), m.ID(), m.Form(), r}
		rows := func() [][]string { return eval.PairsTable(r) }
		return &table{result, rows, func(n *app.Notes) string {
			n.Add("%s of %s%s", m.Form(), m.ID(), end)
			return app.Aligned(rows())
		}}, err
	})
}
