package sample

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gradhop/gradhop/samplers/store"
	task "github.com/gradhop/gradhop/tasks/sample"
)

func printSummary(w io.Writer, dir string, s *store.Summary) error {
	state := "complete"
	if !s.Finished {
		state = fmt.Sprintf("stopped after step %d of %d, warm-up included", s.StepsMade, s.Warmup+s.Steps)
	}
	rows := ""
	if s.RowsRead > 0 {
		rows = fmt.Sprintf(" that read %d rows", s.RowsRead)
	}
	_, err := fmt.Fprintf(w, `%s: %s, %s
model %s (sha256 %.12s), gradhop %s, seed %d
acceptance %s, %s sites changed per step, %d evaluations%s, %.2f s
`, dir, s.Sampler, state, s.Model, s.ModelSHA256, s.Gradhop, s.Seed, s.MeanAcceptance.Text(3), s.MeanHops.Text(2), s.Evaluations.Total(), rows, s.Seconds)
	if err != nil || s.Diagnostics == nil {
		return err
	}
	fmt.Fprintln(w)
	return s.Diagnostics.WriteText(w)
}

// printBest prints the best distinct sequences of a run, with U and each term; nothing if its states are no sequences.
func printBest(w io.Writer, dir string, n int) error {
	best, names, err := task.Best(dir, n)
	if err != nil || len(best) == 0 {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\tchanges\tsequence\n", strings.Join(names, "\t"))
	for _, s := range best {
		for _, v := range s.Values {
			fmt.Fprintf(t, "%.4f\t", v)
		}
		fmt.Fprintf(t, "%s\t%s\n", s.Changes, s.Sequence)
	}
	return t.Flush()
}
