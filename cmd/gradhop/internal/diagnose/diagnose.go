// Package diagnose implements the command that prints the diagnostics of a run.
package diagnose

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/samplers/store/export"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	format, rows := "", 0
	cmd := &cobra.Command{
		Use:   "diagnose RUN | diagnose CHAIN.csv...",
		Short: "Print means, quantiles, R-hat and effective sample sizes of a run",
		Long: `Print the diagnostics of a run: the folder that gradhop sample wrote, also while it is
being written, or files in CmdStan's CSV format, one a chain.

R-hat is the larger of the rank-normalised split R-hat and that of the folded draws;
bulk and tail effective sample sizes and the Monte Carlo standard error are as in
Vehtari et al. 2021, and equal ArviZ's. If there are more sites than --rows, those
that mixed worst are listed.

Draws of sgdld are weighted. Their means, quantiles, standard errors and effective sample
sizes are those of weighted means, and the first line of the table says so.`,
		Example: `  gradhop diagnose run/
  gradhop diagnose run/ --rows -1 --format json
  gradhop diagnose output_1.csv output_2.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Usagef("no run: give its folder, or CSV files")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := table(args, store.TableOptions{Rows: rows})
			if err != nil {
				return err
			}
			if format == "json" {
				return app.JSON(a.Out, t)
			}
			return t.WriteText(a.Out)
		},
	}
	cmd.Flags().IntVar(&rows, "rows", 0, "maximum `number` of sites in the table, -1 for all (default: 32)")
	app.Format(cmd, &format, "text", "json")
	return cmd
}

// table computes the diagnostics of a run folder, or of CmdStan files.
func table(args []string, o store.TableOptions) (*store.Table, error) {
	if !slices.ContainsFunc(args, func(p string) bool { return filepath.Ext(p) == ".csv" }) {
		if len(args) > 1 {
			return nil, app.Usagef("%d folders; give one run, or join several with gradhop merge", len(args))
		}
		r, err := store.Open(args[0])
		if err != nil {
			return nil, err
		}
		return store.Diagnose(r, o)
	}
	for _, p := range args {
		if st, err := os.Stat(p); err == nil && st.IsDir() {
			return nil, app.Usagef("%s is a folder among files; give either one run or its CSV files", p)
		}
	}
	s, err := export.OpenCmdStan(args...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, app.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	return s.Diagnose(o)
}
