package eval

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
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

// RunText does what the options say. Errors: *app.Error (around a *FileError where
// a file is at fault), *app.OutputError, or the context's.
func RunText(ctx context.Context, o *TextOptions) error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	samples, err := readFile(o.Samples, o.App.In, textmetrics.ReadSentences)
	if err != nil {
		return err
	}
	refs, err := readRefs(o.Refs)
	if err != nil {
		return err
	}
	metrics, err := mixing(o.Mix, refs)
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
	if err := print[o.Format](out, metrics.Compute(samples, refs)); err != nil {
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

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// textReport writes a table for people.
func textReport(w io.Writer, r textmetrics.Report) error {
	var t table
	t.row("", "sentences", "BLEU", "unique 1-grams", "2-grams", "3-grams", "4-grams")
	t.row(append([]string{"self", strconv.Itoa(r.Sentences), decimals(r.SelfBLEU, 2)}, each(r.SelfUnique, 2)...)...)
	for _, s := range sets(r) {
		t.row(append([]string{s.Name, strconv.Itoa(s.Sentences), decimals(s.BLEU, 2)}, each(s.Unique, 2)...)...)
	}
	_, err := io.WriteString(w, t.String()+fmt.Sprintf("# %d sentences of %d words in all; all numbers in percent\n", r.Sentences, r.Tokens))
	return err
}

func csvReport(w io.Writer, r textmetrics.Report) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"against", "sentences", "bleu", "unique_1", "unique_2", "unique_3", "unique_4"}}
	add := func(name string, sentences int, bleu textmetrics.Percent, unique textmetrics.ByOrder) {
		rows = append(rows, append([]string{name, strconv.Itoa(sentences), decimals(bleu, 4)}, each(unique, 4)...))
	}
	add("self", r.Sentences, r.SelfBLEU, r.SelfUnique)
	for _, s := range sets(r) {
		add(s.Name, s.Sentences, s.BLEU, s.Unique)
	}
	return c.WriteAll(rows)
}

// decimals writes a percentage, NA where it is undefined.
func decimals(p textmetrics.Percent, n int) string { return run.Number(p).Text(n) }

func each(b textmetrics.ByOrder, n int) []string {
	var list []string
	for _, p := range b {
		list = append(list, decimals(p, n))
	}
	return list
}

// table lays out cells: the first column to the left, the others to the right.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the table with a newline after every row.
func (t *table) String() string {
	var width []int
	for _, r := range t.rows {
		for k, cell := range r {
			if k == len(width) {
				width = append(width, 0)
			}
			width[k] = max(width[k], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		for k, cell := range r {
			pad := strings.Repeat(" ", width[k]-len([]rune(cell)))
			if k == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
