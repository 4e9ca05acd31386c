// Package eval holds the commands that score: samplers by the protocols of papers, models
// by pairs of sentences, and files of sentences by text metrics.
package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score samplers, models, or a file of sentences, as papers do",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewInfill(a, nil), NewPairs(a, nil), NewPromptTune(a, nil), NewText(a, nil))
	return cmd
}

// formats are what --format takes.
var formats = []string{"text", "csv", "json"}

func checkFormat(format string) error {
	if !slices.Contains(formats, format) {
		return app.Usagef("--format %q: want text, csv or json", format)
	}
	return nil
}

func completeFormat(cmd *cobra.Command) {
	// The only error is a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// InterruptedError reports a run that ended early, with what was finished printed. It
// wraps the context's error, or the one that ended the run.
type InterruptedError struct {
	Finished, Of int
	What         string // they count, "samplers" or "searches"
	Err          error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%d of %d %s finished: %v", e.Finished, e.Of, e.What, e.Err)
}

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table aligns cells: the first column to the left, the others to the right.
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
