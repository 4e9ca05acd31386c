package prompttune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/samplers"
)

// printer writes to standard output in one of the formats.
type printer struct {
	format string
	w      io.Writer
}

func newPrinter(o *Options) (*printer, error) {
	switch o.Format {
	case "text", "json", "jsonl":
		return &printer{o.Format, o.App.Out}, nil
	}
	return nil, app.Usagef("--format %q: want text, json or jsonl", o.Format)
}

// improvement writes a prompt that is better than all before it.
func (p *printer) improvement(r Result) error {
	if p.format != "jsonl" {
		return nil
	}
	return p.json(r, "")
}

// end writes what the run came to.
func (p *printer) end(d *Document) error {
	switch p.format {
	case "json":
		return p.json(d, "  ")
	case "jsonl":
		return p.json(d, "")
	}
	return p.write(d.text())
}

func (p *printer) json(v any, indent string) error {
	text, err := encode(v, indent)
	if err != nil {
		return err
	}
	return p.write(string(text))
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

func (p *printer) write(text string) error {
	if _, err := io.WriteString(p.w, text); err != nil {
		return &app.OutputError{Err: err}
	}
	return nil
}

// text writes the document for people.
func (d *Document) text() string {
	var b strings.Builder
	for _, r := range d.Results {
		fmt.Fprintf(&b, "%8.4f  %s\n", r.Cosine, r.Text)
	}
	if len(d.Results) == 0 && d.Diagnostics.Steps > 0 {
		b.WriteString("# no prompt was found: every one that was visited is blocked or does not round-trip\n")
	}
	s, g := d.Settings, d.Diagnostics
	switch d.Stopped {
	case stoppedPatience:
		fmt.Fprintf(&b, "# stopped after %d of %d steps: no better prompt in the last %d\n", g.Steps, s.Warmup+s.Steps, s.Patience)
	case stoppedTime:
		fmt.Fprintf(&b, "# stopped after %d of %d steps: the time limit of %s\n", g.Steps, s.Warmup+s.Steps, s.TimeLimit)
	case stoppedInterrupted:
		fmt.Fprintf(&b, "# interrupted after %d of %d steps\n", g.Steps, s.Warmup+s.Steps)
	case stoppedFailed:
		fmt.Fprintf(&b, "# failed after %d of %d steps\n", g.Steps, s.Warmup+s.Steps)
	}
	fmt.Fprintf(&b, "# %s on %s", s.Sampler, d.targets())
	for i, m := range d.Models {
		between := ", "
		if i == 0 {
			between = " by "
		}
		fmt.Fprintf(&b, "%s%s (sha256 %.12s)", between, m.Name, m.TextSHA256)
	}
	fmt.Fprintf(&b, ": %d tokens for %d blanks, beta %s, %d chains, seed %d\n", s.Proposed, strings.Count(s.Template, "_"), s.Beta, s.Chains, d.Seed)
	fmt.Fprintf(&b, "# %d steps: acceptance %s, hops %s, %s evaluations in %.1f s\n", g.Steps, g.Acceptance.Text(2), g.Hops.Text(2), g.evaluations(), g.Seconds)
	if reg, err := samplers.Lookup(s.Sampler); err == nil && !reg.Exact {
		fmt.Fprintf(&b, "# %s\n", run.NotExact(reg))
	}
	return b.String()
}

// evaluations says how many there were, and how many of them for texts alone.
func (g Diagnostics) evaluations() string {
	text := fmt.Sprint(g.Evaluations.Total() + g.Rescored)
	if g.Rescored > 0 {
		text += fmt.Sprintf(" (%d of them of texts scored apart)", g.Rescored)
	}
	return text
}

// targets counts pictures and texts.
func (d *Document) targets() string {
	n := 0
	for _, s := range d.Images {
		n += s.Used
	}
	var parts []string
	switch {
	case n == 1:
		parts = append(parts, "1 picture")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d pictures", n))
	}
	switch n := len(d.Texts); {
	case n == 1:
		parts = append(parts, "1 text")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d texts", n))
	}
	return strings.Join(parts, " and ")
}
