package eval

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
)

// print writes results in the format asked for.
func (o *PromptTuneOptions) print(w io.Writer, r *Searches) error {
	switch o.Format {
	case "json":
		return writeJSON(w, r)
	case "csv":
		return r.csv(w)
	}
	_, err := io.WriteString(w, r.text())
	return err
}

// text is table 3 of the paper, with what it cost.
func (r *Searches) text() string {
	var names []string
	for _, s := range r.Searches {
		if !slices.Contains(names, s.Sampler) {
			names = append(names, s.Sampler)
		}
	}
	var b strings.Builder
	b.WriteString(r.table("best cosine", names, func(s Searched) string {
		if s.SD != s.SD {
			return s.Mean.Text(4)
		}
		return s.Mean.Text(4) + " ± " + s.SD.Text(4)
	}))
	b.WriteByte('\n')
	b.WriteString(r.table("evaluations with gradient + texts scored, of all repeats", names, func(s Searched) string {
		return fmt.Sprintf("%d + %d", s.Evaluations.Gradient, s.Scored+s.Evaluations.Density+s.Evaluations.Conditional)
	}))
	b.WriteByte('\n')
	b.WriteString(r.table("seconds of all repeats", names, func(s Searched) string { return run.Number(s.Seconds).Text(1) }))
	b.WriteByte('\n')
	for _, s := range r.Searches {
		if k := best(s.Best); k >= 0 {
			fmt.Fprintf(&b, "%8s  %-14s %2d  %s\n", s.Best[k].Text(4), s.Sampler, s.Length, s.Texts[k])
		}
	}
	r.footnotes(&b)
	return b.String()
}

// best is the index of the largest number, -1 where all are NaN.
func best(x []run.Number) int {
	at := -1
	for i, v := range x {
		if v == v && (at < 0 || v > x[at]) {
			at = i
		}
	}
	return at
}

// table has a row for each sampler and a column for each length.
func (r *Searches) table(title string, names []string, cell func(Searched) string) string {
	var t table
	head := []string{title}
	for _, n := range r.Lengths {
		head = append(head, strconv.Itoa(n)+" blanks")
	}
	t.row(head...)
	for _, name := range names {
		row := []string{name}
		for _, n := range r.Lengths {
			text := "-"
			for _, s := range r.Searches {
				if s.Sampler == name && s.Length == n {
					text = cell(s)
				}
			}
			row = append(row, text)
		}
		t.row(row...)
	}
	return t.String()
}

// footnotes say how a table was made.
func (r *Searches) footnotes(b *strings.Builder) {
	note := func(format string, args ...any) { fmt.Fprintf(b, "# "+format+"\n", args...) }
	if r.Interrupted {
		note("incomplete: the run ended before all searches were done")
	}
	note("mean ± standard deviation of the best cosine of %d repeats; %d steps after %d of warm-up, beta %s, seed %d", r.Repeats, r.Steps, r.Warmup, r.Beta, r.Seed)
	for _, s := range r.Searches {
		if s.Length == r.Lengths[0] {
			note("%s: %s", s.Sampler, options(s.Options, ", "))
		}
	}
	for _, s := range r.Images {
		note("pictures %s: %d, weight %g", s.Path, s.Used, s.Weight)
	}
	for _, t := range r.Texts {
		note("text %q, weight %g", t.Text, t.Weight)
	}
	for _, m := range r.Models {
		note("model %s (sha256 of the text tower %.12s), %d tokens proposed", m.Name, m.TextSHA256, r.Proposed)
	}
	note("gradhop %s, onnxruntime %s", r.Gradhop, r.ONNXRuntime)
}

// csv writes a row for each repeat, its settings included.
func (r *Searches) csv(w io.Writer) error {
	rows := [][]string{{"sampler", "options", "length", "repeat", "cosine", "text", "gradient", "density", "conditional", "scored", "seconds",
		"repeats", "steps", "warmup", "beta", "image_batch", "seed", "model", "text_sha256", "gradhop", "onnxruntime"}}
	var model, sum []string
	for _, m := range r.Models {
		model, sum = append(model, m.Name), append(sum, m.TextSHA256)
	}
	for _, s := range r.Searches {
		for k, v := range s.Best {
			row := []string{s.Sampler, options(s.Options, ";"), strconv.Itoa(s.Length), strconv.Itoa(k), v.Text(6), s.Texts[k]}
			for _, n := range []int64{s.Evaluations.Gradient, s.Evaluations.Density, s.Evaluations.Conditional, s.Scored} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			row = append(row, run.Number(s.Seconds).Text(3))
			for _, n := range []int{r.Repeats, r.Steps, r.Warmup} {
				row = append(row, strconv.Itoa(n))
			}
			rows = append(rows, append(row, r.Beta, strconv.Itoa(r.ImageBatch), strconv.FormatUint(r.Seed, 10),
				strings.Join(model, "+"), strings.Join(sum, "+"), r.Gradhop, r.ONNXRuntime))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}
