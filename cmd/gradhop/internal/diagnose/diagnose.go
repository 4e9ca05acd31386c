// Package diagnose implements the command that prints the diagnostics of a run.
package diagnose

import (
	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	format, rows := "", 0
	cmd := &cobra.Command{
		Use:   "diagnose RUN",
		Short: "Print means, quantiles, R-hat and effective sample sizes of a run",
		Long: `Print the diagnostics of a run: the folder that gradhop sample wrote, also while it is
being written.

R-hat is the larger of the rank-normalised split R-hat and that of the folded draws;
bulk and tail effective sample sizes and the Monte Carlo standard error are as in
Vehtari et al. 2021, and equal ArviZ's. If there are more sites than --rows, those
that mixed worst are listed.

Draws of sgdld are weighted. Their means, quantiles, standard errors and effective sample
sizes are those of weighted means, and the first line of the table says so.`,
		Example: `  gradhop diagnose run/
  gradhop diagnose run/ --rows -1 --format json`,
		Args: app.Args("one run, the folder; gradhop merge joins several"),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := store.Open(args[0])
			if err != nil {
				return err
			}
			t, err := store.Diagnose(r, store.TableOptions{Rows: rows})
			if err != nil {
				return err
			}
			if format == "json" {
				return app.JSON(a.Out, t)
			}
			return t.WriteText(a.Out)
		},
	}
	app.Int(cmd.Flags(), &rows, "rows", 0, -1, "maximum `number` of sites in the table, -1 for all (default: 32)")
	app.Format(cmd, &format, "text", "json")
	a.Declare(cmd, app.Always("rows", "format"))
	return cmd
}
