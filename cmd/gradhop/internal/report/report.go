// Package report is the command that writes a page about a run.
package report

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/samplers/store/export"
	"github.com/gradhop/gradhop/tasks/sample"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	out, size, rows := "", "", 0
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Write a page about a run: traces, rank histograms, diagnostics, pictures",
		Long: `Write one self-contained HTML page about a run that gradhop sample made: settings,
trace and autocorrelation of U, rank histograms, acceptance and step size over time,
the table of diagnostics, and the last draws as pictures or numbers. The page loads
nothing from anywhere and runs no script.`,
		Example: `  gradhop report run/
  gradhop report run/ --out page.html --picture 28x28`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return app.Usagef("%d arguments; report takes the folder of one run", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			if out == "" {
				out = filepath.Join(dir, "report.html")
			}
			r, err := store.Open(dir)
			if err != nil {
				return err
			}
			pic, err := picture(r, dir, size)
			if err != nil {
				return err
			}
			p, err := gather(r, dir, pic, store.TableOptions{Rows: rows})
			if err != nil {
				return err
			}
			f, err := a.Create(out)
			if err != nil {
				return err
			}
			defer f.Discard()
			if err := p.write(f); err != nil {
				return err
			}
			if err := f.Commit(); err != nil {
				return err
			}
			a.Logf("%s", out)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "`file` to write (default: report.html in the run's folder; - is standard output)")
	f.StringVar(&size, "picture", "", "`HxW` or HxWxC: states are pictures of this size (default: what the run was started with, or none)")
	f.IntVar(&rows, "rows", 0, "most sites in the table, -1 for all (default: 32)")
	return cmd
}

// picture returns the size of states as pictures, or nil where they are none: what was
// asked for, else what gradhop sample found.
func picture(r *store.Reader, dir, size string) (*export.Picture, error) {
	if size == "" {
		o, err := sample.Load(dir)
		if err != nil {
			return nil, nil // the run of another task, or of a library
		}
		size = o.Picture
	}
	pic, err := sample.PictureOf(r, size)
	return pic, app.Flagged(err)
}

// percent writes a share for people.
func percent(x store.Number) string {
	if x != x {
		return "NA"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(x))
}
