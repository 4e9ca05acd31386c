package eval

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/eval"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// TextOptions are the flags and the argument of eval text.
type TextOptions struct {
	App     *app.App
	Samples string // file, "-" for standard input
	Refs    []string
	Mix     int // sentences of each reference file in the mixture; 0 means all
	Format  string
	Out     string
}

// NewText returns the command eval text. runF replaces the run in tests of flags; nil
// means the real one.
func NewText(a *app.App, runF func(context.Context, *TextOptions) error) *cobra.Command {
	o := &TextOptions{App: a, Mix: 2500}
	cmd := &cobra.Command{
		Use:   "text [flags] samples.txt",
		Short: "BLEU, self-BLEU and unique n-grams of a file of sentences",
		Long: `Score sentences, one a line, against files of reference sentences and against each
other, as Wang and Cho (2019) do: corpus BLEU by NLTK's rules (4-grams, equal
weights, no smoothing) for quality; self-BLEU and unique n-grams for diversity.

Lines are lower-cased and split at white space. In references, ` + "``" + ` and '' become
" and @@UNKNOWN@@ becomes [UNK].

The row "self" has self-BLEU, and the n-grams that occur exactly once; the others have
corpus BLEU, and the distinct n-grams that no reference has; n-grams in percent of all
their occurrences in the sentences.`,
		Example: `  gradhop eval text samples.txt --refs books.txt --refs wiki.txt
  gradhop eval text samples.txt --refs books.txt --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return app.Usagef("%d arguments; want one file of sentences, or - for standard input", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Samples = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return RunText(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.Refs, "refs", nil, "`file` of reference sentences, one a line; may be given several times")
	f.IntVar(&o.Mix, "mix", o.Mix, "with several references, also compare with the first `n` sentences of each together; 0 for all")
	f.StringVar(&o.Format, "format", "text", "text, csv or json")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	completeFormat(cmd)
	return cmd
}

// RunText does what the options say. Errors: *app.Error, *eval.FileError, *app.OutputError, or the context's.
func RunText(ctx context.Context, o *TextOptions) error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	samples, err := eval.ReadSentences(o.Samples, o.App.In, textmetrics.ReadSentences)
	if err != nil {
		return err
	}
	refs, err := readRefs(o.Refs, o.Mix)
	if err != nil {
		return err
	}
	out, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := ctx.Err(); err != nil {
		return err
	}
	print := map[string]func(io.Writer, textmetrics.Report) error{"text": textReport, "csv": csvReport, "json": jsonReport}
	if err := print[o.Format](out, eval.Mixture(o.Mix, refs).Compute(samples, refs)); err != nil {
		return err
	}
	return out.Commit()
}

func jsonReport(w io.Writer, r textmetrics.Report) error {
	return writeJSON(w, struct {
		Gradhop string `json:"gradhop"`
		textmetrics.Report
	}{app.Version(), r})
}

// readRefs reads the files of --refs and checks --mix.
func readRefs(paths []string, mix int) ([]textmetrics.Refs, error) {
	switch {
	case len(paths) == 0:
		return nil, app.Usagef("no references: give at least one file with --refs")
	case mix < 0:
		return nil, app.Usagef("--mix %d: want 0 or more", mix)
	}
	return eval.ReadReferences(paths)
}

// textReport writes a table for people.
func textReport(w io.Writer, r textmetrics.Report) error {
	var t table
	t.row("", "sentences", "BLEU", "unique 1-grams", "2-grams", "3-grams", "4-grams")
	t.row(append([]string{"self", strconv.Itoa(r.Sentences), eval.Cell(r.SelfBLEU, 2)}, each(r.SelfUnique, 2)...)...)
	for _, s := range eval.Sets(r) {
		t.row(append([]string{s.Name, strconv.Itoa(s.Sentences), eval.Cell(s.BLEU, 2)}, each(s.Unique, 2)...)...)
	}
	_, err := io.WriteString(w, t.String()+fmt.Sprintf("# %d sentences of %d words in all; all numbers in percent\n", r.Sentences, r.Tokens))
	return err
}

func csvReport(w io.Writer, r textmetrics.Report) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"against", "sentences", "bleu", "unique_1", "unique_2", "unique_3", "unique_4"}}
	add := func(name string, sentences int, bleu textmetrics.Percent, unique textmetrics.ByOrder) {
		rows = append(rows, append([]string{name, strconv.Itoa(sentences), eval.Cell(bleu, 4)}, each(unique, 4)...))
	}
	add("self", r.Sentences, r.SelfBLEU, r.SelfUnique)
	for _, s := range eval.Sets(r) {
		add(s.Name, s.Sentences, s.BLEU, s.Unique)
	}
	return c.WriteAll(rows)
}

func each(b textmetrics.ByOrder, n int) []string {
	var list []string
	for _, p := range b {
		list = append(list, eval.Cell(p, n))
	}
	return list
}
