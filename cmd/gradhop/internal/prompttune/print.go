package prompttune

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"fmt"
	"io"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
)

// printer writes to standard output in one of the formats.
type printer struct {
	format string
	w      io.Writer
	failed bool // w cannot be written any more
}

func newPrinter(o *Options) (*printer, error) {
	switch o.Format {
	case "text", "json", "jsonl":
		return &printer{format: o.Format, w: o.App.Out}, nil
	}
	return nil, app.Usagef("--format %q: want text, json or jsonl", o.Format)
}

// improvement writes a prompt that is better than all before it.
func (p *printer) improvement(r task.Prompt) error {
	if p.format != "jsonl" {
		return nil
	}
	return p.json(r, "")
}

// end writes what the run came to.
func (p *printer) end(d *task.Document) error {
	switch p.format {
	case "json":
		return p.json(d, "  ")
	case "jsonl":
		return p.json(d, "")
	}
	return p.write(text(d))
}

func (p *printer) json(v any, indent string) error {
	text, err := task.Encode(v, indent)
	if err != nil {
		return err
	}
	return p.write(string(text))
}

func (p *printer) write(text string) error {
	if _, err := io.WriteString(p.w, text); err != nil {
		p.failed = true
		return &app.OutputError{Err: err}
	}
	return nil
}

// text writes the document for people.
func text(d *task.Document) string {
	var b strings.Builder
	for _, r := range d.Results {
		fmt.Fprintf(&b, "%8.4f  %s\n", r.U, r.Text)
	}
	if len(d.Results) == 0 && d.Diagnostics.Steps > 0 {
		b.WriteString("# no prompt was found: every one that was visited is blocked or does not round-trip\n")
	}
	baseline(&b, d)
	s, g := d.Settings, d.Diagnostics
	switch d.Stopped {
	case task.StoppedPatience:
		fmt.Fprintf(&b, "# stopped after %d of %d steps: no better prompt in the last %d\n", g.Steps, s.Warmup+s.Steps, s.Patience)
	case task.StoppedEvaluations:
		fmt.Fprintf(&b, "# stopped after %d of %d steps: the limit of %d evaluations\n", g.Steps, s.Warmup+s.Steps, s.Evaluations)
	case task.StoppedTime:
		fmt.Fprintf(&b, "# stopped after %d of %d steps: the time limit of %s\n", g.Steps, s.Warmup+s.Steps, s.TimeLimit)
	case task.StoppedInterrupted:
		fmt.Fprintf(&b, "# interrupted after %d of %d steps\n", g.Steps, s.Warmup+s.Steps)
	case task.StoppedFailed:
		fmt.Fprintf(&b, "# failed after %d of %d steps\n", g.Steps, s.Warmup+s.Steps)
	}
	fmt.Fprintf(&b, "# %s on %s", s.Sampler, d.Targets())
	for i, m := range d.Models {
		between := ", "
		if i == 0 {
			between = " by "
		}
		fmt.Fprintf(&b, "%s%s (sha256 %.12s)", between, m.Name, m.TextSHA256)
	}
	fmt.Fprintf(&b, ": %d tokens for %d blanks, beta %s, %d chains, seed %d\n", s.Proposed, strings.Count(s.Template, "_"), s.Beta, s.Chains, d.Seed)
	fmt.Fprintf(&b, "# %d steps: acceptance %s, hops %s, %s evaluations in %.1f s\n", g.Steps, g.Acceptance.Text(2), g.Hops.Text(2), evaluations(g), g.Seconds)
	if reg, err := samplers.Lookup(s.Sampler); err == nil && !reg.Exact {
		fmt.Fprintf(&b, "# %s\n", task.NotExact(reg))
	}
	return b.String()
}

// baseline writes the best plain words, and whether they score as well as the best prompt.
func baseline(b *strings.Builder, d *task.Document) {
	if d.Score() == "U" {
		b.WriteString("# the numbers are U, the mean of the cosines by weight, of which some are negative\n")
	}
	for _, r := range d.Baseline {
		fmt.Fprintf(b, "# plain words: %.4f  %s\n", r.U, r.Text)
	}
	if len(d.Baseline) > 0 && len(d.Results) > 0 && d.Baseline[0].U >= d.Results[0].U {
		b.WriteString("# plain words score as well as the prompts that were found\n")
	}
}

// evaluations says how many there were, and how many of them for texts alone.
func evaluations(g task.Diagnostics) string {
	text := fmt.Sprint(g.Evaluations.Total() + g.Rescored)
	if g.Rescored > 0 {
		text += fmt.Sprintf(" (%d of them of texts scored apart)", g.Rescored)
	}
	return text
}
