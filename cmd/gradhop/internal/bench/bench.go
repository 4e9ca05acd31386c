// Package bench is the command that runs the experiments of papers.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/bench"
)

// options are the flags of gradhop bench.
type options struct {
	out   string
	file  string
	quick bool
	seed  uint64
}

// New returns the command.
func New(a *app.App) *cobra.Command {
	o := &options{}
	var list strings.Builder
	var names []string
	for _, e := range bench.Experiments() {
		names = append(names, e.Name)
		fmt.Fprintf(&list, "  %s\n      %s\n      %s\n", e.Name, e.Doc, e.Paper)
		if e.File != "" {
			fmt.Fprintf(&list, "      --file: %s\n", e.File)
		}
	}
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Run an experiment of a paper and say which of its claims hold",
		Long: `Run an experiment of a paper and say which of its claims hold. The table goes to
NAME.csv and the figures to NAME-FIGURE.png in --out; the claims are printed.

Experiments:
` + strings.TrimSuffix(list.String(), "\n"),
		Example:   "  gradhop bench learn-ising --quick --out bench/",
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return app.Usagef("%d arguments; want one experiment: %s", len(args), strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.out, "out", "o", "", "`folder` for the table and the figures (default: print the table)")
	f.StringVar(&o.file, "file", "", "`file` that the experiment reads, where it takes one")
	f.BoolVar(&o.quick, "quick", false, "a small version, to see that it works")
	f.Uint64Var(&o.seed, "seed", 0, "`number` that determines all random numbers")
	return cmd
}

func (o *options) run(ctx context.Context, a *app.App, name string) error {
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o777); err != nil {
			return app.Unwritable(o.out, err)
		}
	}
	bar := a.NewBar()
	r, err := bench.Run(ctx, name, bench.Settings{Quick: o.quick, Seed: o.seed, File: o.file, Runtime: a.Runtime(),
		Progress: func(part string, done, total int) { bar.Show(name, int64(done), int64(total), part) }})
	bar.Clear()
	if err != nil {
		return err
	}
	if o.out == "" {
		if err := r.WriteCSV(a.Out); err != nil {
			return err
		}
	} else if err := o.write(a, name, r); err != nil {
		return err
	}
	for _, c := range r.Claims {
		if _, err := fmt.Fprintln(a.Out, c); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.Out, "%s, seed %d, gradhop %s\n", name, o.seed, app.Version())
	return err
}

// write writes the files of a result.
func (o *options) write(a *app.App, name string, r *bench.Result) error {
	file := func(name string, body func(io.Writer) error) error {
		out, err := a.Create(filepath.Join(o.out, name))
		if err != nil {
			return err
		}
		defer out.Discard()
		if err := body(out); err != nil {
			return err
		}
		return out.Commit()
	}
	if err := file(name+".csv", r.WriteCSV); err != nil {
		return err
	}
	for _, f := range r.Figures {
		if err := file(name+"-"+f.Name+".png", f.WritePNG); err != nil {
			return err
		}
	}
	return nil
}
