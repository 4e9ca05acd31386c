package infill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// printer writes documents in one of the formats, each as soon as it is there.
type printer struct {
	format  string
	array   bool // the output is one JSON array
	w       io.Writer
	printed int
}

// document writes a document. Of one without results the text format says nothing: people
// are told on standard error.
func (p *printer) document(d *task.Document) error {
	if p.format != "text" {
		return p.json(d)
	}
	if d.Error != "" {
		return nil
	}
	sep := ""
	if p.printed > 0 {
		sep = "\n"
	}
	return p.write(sep + text(d))
}

func (p *printer) json(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	prefix := ""
	if p.array {
		prefix = "  "
	}
	if p.format == "json" {
		e.SetIndent(prefix, "  ")
	}
	if err := e.Encode(v); err != nil {
		return err
	}
	text := b.String()
	if p.array {
		between := "[\n  "
		if p.printed > 0 {
			between = ",\n  "
		}
		text = between + strings.TrimSuffix(text, "\n")
	}
	return p.write(text)
}

// end closes what is open.
func (p *printer) end() error {
	switch {
	case !p.array:
		return nil
	case p.printed == 0:
		return p.write("[]\n")
	}
	return p.write("\n]\n")
}

func (p *printer) write(text string) error {
	p.printed++
	_, err := io.WriteString(p.w, text)
	return err
}

// text writes a document for people.
func text(d *task.Document) string {
	var b strings.Builder
	if d.Line > 0 {
		fmt.Fprintf(&b, "# line %d: %s\n", d.Line, d.Input)
	}
	sentences := d.Results
	for _, draw := range d.Draws {
		sentences = append(sentences, draw.Sentence)
	}
	differs := false
	for _, s := range sentences {
		mark := ""
		if s.Differs {
			mark, differs = " *", true
		}
		fmt.Fprintf(&b, "%9s  %s%s\n", s.LogP.Text(3), s.Text, mark)
	}
	var n app.Notes
	if differs {
		n.Add("* the model reads this text as other tokens than those that were scored")
	}
	of := fmt.Sprintf("%s of %s", d.Settings.Energy, d.Model)
	if s := d.Search; s != nil {
		stopped := ""
		if s.Stopped != "" {
			stopped = "stopped early: " + s.Stopped + "; "
		}
		n.Add("%s%s, %d sequences in %.1f s", stopped, of, s.Sequences, s.Seconds)
	} else {
		diagnostics(&n, d, of)
	}
	return b.String() + n.String()
}

// diagnostics are the notes of draws.
func diagnostics(n *app.Notes, d *task.Document, of string) {
	g, s := d.Diagnostics, d.Settings.Sampling
	if d.Interrupted {
		n.Add("interrupted after %d of %d sweeps", g.Steps/int64(len(d.Blanks)), s.Sweeps)
	}
	n.Add("%s", g.Verdict)
	size := ""
	if text := g.StepSize.Text(2); text != "NA" {
		size = ", step size " + text
	}
	n.Add("%d draws: acceptance %s, hops %s, R-hat %s, bulk ESS %s (worst blank %s and %s)%s, %d evaluations in %.1f s", len(d.Draws),
		g.Acceptance.Text(2), g.Hops.Text(2), g.RHat.Text(2), g.ESSBulk.Text(0), g.RHatBlanks.Text(2), g.ESSBlanks.Text(0), size, g.Evaluations, g.Seconds)
	n.Add("%s on %s at temperature %v, %d chains of %d sweeps after %d of warm-up, thinned by %d, seed %d",
		s.Sampler, of, d.Settings.Temperature, s.Chains, s.Sweeps, s.Warmup, s.Thin, s.Seed)
	if s.Draft != "" && g.DraftRejected != nil {
		n.Add("%s", samplers.DescribeStages(s.Draft, float64(*g.DraftRejected), float64(*g.ModelRejected)))
	}
	if reg, err := samplers.Lookup(s.Sampler); err == nil && !reg.Exact {
		n.Add("%s", reg.Caveat())
	}
}
