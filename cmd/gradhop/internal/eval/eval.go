// Package eval implements the commands that score models by pairs of sentences, and sentences by text
// metrics.
package eval

import (
	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score a model by pairs of sentences, or a file of sentences, as papers do",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPairs(a), newText(a))
	return cmd
}

// output holds the flags common to these commands.
type output struct {
	app    *app.App
	format string
	out    string
}

func (o *output) addFlags(cmd *cobra.Command) {
	app.Format(cmd, &o.format, "text", "csv", "json")
	app.OutFlag(cmd.Flags(), &o.out)
}

// table is a result with its formats as rows and as text, to which notes belong.
type table struct {
	result any
	rows   func() [][]string
	text   func(notes *app.Notes) string
}

// run opens --out before work is called, and writes the table that work returns, even if it comes with
// an error.
func (o *output) run(work func() (*table, error)) error {
	out, err := o.app.Create(o.out)
	if err != nil {
		return err
	}
	defer out.Discard()
	t, err := work()
	if t == nil {
		return err
	}
	var notes app.Notes
	if e := app.Print(out, o.format, t.result, t.rows, func() string { return t.text(&notes) }); e != nil {
		return e
	}
	if e := out.Commit(); e != nil {
		return e
	}
	o.app.Print(&notes)
	return err
}

func refsFlags(cmd *cobra.Command, refs *[]string, mix *int, most int, what string) {
	cmd.Flags().StringArrayVar(refs, "refs", nil, "`file` of reference sentences, one per line; may be repeated")
	app.Int(cmd.Flags(), mix, "mix", most, 0, "with several references, "+what+" the first `n` sentences of each together; 0 for all")
}

// oneRef reports whether there is nothing to mix.
func oneRef(refs *[]string) func() bool { return func() bool { return len(*refs) == 1 } }

// checkRefs returns an error if there are no references.
func checkRefs(refs []string) error {
	if len(refs) == 0 {
		return app.Usagef("no references: give at least one file with --refs")
	}
	return nil
}
