// Package eval is the command that scores: files of sentences by the text metrics of
// the infilling papers, and samplers by the papers' protocol.
package eval

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score samplers, or a file of sentences, as the papers do",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewInfill(a, nil), NewPromptTune(a, nil), NewText(a, nil))
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

// FileError reports a file of sentences that cannot be used: it is not there, empty, or
// not UTF-8.
type FileError struct {
	Path string
	Err  error // *textmetrics.EncodingError has the line
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }
