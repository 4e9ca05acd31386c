package infill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// document is a result with all that is needed to make it again. It is the same for equal
// settings and seed but for seconds, whatever the number of threads and the size of
// batches.
type document struct {
	Gradhop  string      `json:"gradhop"` // version
	Settings settings    `json:"settings"`
	Model    run.ModelID `json:"model"`
	// Line is the number of the line that the text was read from, 0 for an argument.
	Line    int             `json:"line,omitempty"`
	Input   string          `json:"input"`
	Error   string          `json:"error,omitempty"`
	Blanks  []task.Blank    `json:"blanks,omitempty"`
	Results []task.Sentence `json:"results,omitempty"`
	Search  *searched       `json:"search,omitempty"`
	Draws   []task.Draw     `json:"draws,omitempty"`
	// Diagnostics are of the draws.
	Diagnostics *task.Diagnostics `json:"diagnostics,omitempty"`
	Interrupted bool              `json:"interrupted,omitempty"`
}

type searched struct {
	Sequences int64   `json:"sequences"`
	Seconds   float64 `json:"seconds"`
	Stopped   string  `json:"stopped,omitempty"`
}

// settings are those that a result depends on, named as their flags.
type settings struct {
	Energy        string    `json:"energy"`
	MaskEmbedding string    `json:"mask_embedding"`
	Temperature   float64   `json:"temperature"`
	Top           int       `json:"top,omitempty"`
	Rank          string    `json:"rank"`
	Beam          int       `json:"beam,omitempty"`
	NoPunctuation bool      `json:"no_punctuation"`
	NoRepeat      bool      `json:"no_repeat"`
	Pieces        bool      `json:"pieces"`
	Allow         []string  `json:"allow,omitempty"`
	Block         []string  `json:"block,omitempty"`
	Provider      string    `json:"provider"`
	Sampling      *sampling `json:"sampling,omitempty"`
}

type sampling struct {
	Draws    int               `json:"draws"`
	Sampler  string            `json:"sampler"`
	Exact    bool              `json:"sampler_exact"`
	Options  map[string]string `json:"sampler_options"`
	Gradient string            `json:"gradient"`
	Chains   int               `json:"chains"`
	Warmup   int               `json:"warmup"`
	Init     string            `json:"init"`
	Seed     uint64            `json:"seed"`
}

func (o *Options) record() settings {
	e, s := o.Energy, o.Sampling
	out := settings{
		Energy: e.Form, MaskEmbedding: e.MaskEmbedding, Temperature: e.Temperature, Top: o.Search.Top, Rank: o.Rank, Beam: o.Search.Beam,
		NoPunctuation: o.Words.NoPunctuation, NoRepeat: o.Words.NoRepeat, Pieces: o.Words.Pieces, Allow: o.Allow, Block: o.Block,
		Provider: o.App.Provider,
	}
	if reg, err := samplers.Lookup(s.Sampler); o.Draws > 0 && err == nil {
		out.Sampling = &sampling{o.Draws, reg.Name, reg.Exact, run.Options(reg, s.Options), e.Gradient, s.Chains, s.Warmup, string(s.Init), s.Seed}
	}
	return out
}

// printer writes results in one of the formats, each as soon as it is there.
type printer struct {
	o       *Options
	w       io.Writer
	model   run.ModelID
	printed int
}

func newPrinter(o *Options) (*printer, error) {
	switch o.Format {
	case "text", "json", "jsonl":
		return &printer{o: o}, nil
	}
	return nil, app.Usagef("--format %q: want text, json or jsonl", o.Format)
}

func (p *printer) begin(w io.Writer, m *task.Model) { p.w, p.model = w, run.Identify(m.Source) }

// array says that the output is one JSON array.
func (p *printer) array() bool { return p.o.Format == "json" && p.o.File != "" }

func (p *printer) document(line int, input string) document {
	return document{Gradhop: app.Version(), Settings: p.o.record(), Model: p.model, Line: line, Input: input}
}

func (p *printer) result(line int, r result) error {
	if p.o.Format == "text" {
		return p.text(line, r)
	}
	d := p.document(line, r.problem.Text)
	d.Blanks, d.Interrupted = r.problem.Blanks, r.err != nil
	if a := r.answer; a != nil {
		d.Results, d.Search = a.Sentences, &searched{a.Sequences, a.Seconds, a.Stopped}
	} else {
		d.Draws, d.Diagnostics = p.draws(r), &r.draws.Diagnostics
	}
	return p.json(d)
}

// draws are as many as were asked for; the last step may have more.
func (p *printer) draws(r result) []task.Draw {
	return r.draws.Sentences[:min(p.o.Draws, len(r.draws.Sentences))]
}

// failure writes an object where the format has objects; texts are for people, who
// are told on standard error.
func (p *printer) failure(line int, text string, err error) error {
	if p.o.Format == "text" {
		return nil
	}
	d := p.document(line, strings.ToValidUTF8(text, "\ufffd"))
	d.Error = err.Error()
	return p.json(d)
}

func (p *printer) json(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	prefix := ""
	if p.array() {
		prefix = "  "
	}
	if p.o.Format == "json" {
		e.SetIndent(prefix, "  ")
	}
	if err := e.Encode(v); err != nil {
		return err
	}
	text := b.String()
	if p.array() {
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
	case !p.array():
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

// text writes a result for people.
func (p *printer) text(line int, r result) error {
	var b strings.Builder
	if p.printed > 0 {
		b.WriteByte('\n')
	}
	if line > 0 {
		fmt.Fprintf(&b, "# line %d: %s\n", line, r.problem.Text)
	}
	note := ""
	sentence := func(s task.Sentence) {
		mark := ""
		if s.Differs {
			mark, note = " *", "# * the model reads this text as other tokens than those that were scored\n"
		}
		fmt.Fprintf(&b, "%9s  %s%s\n", s.LogP.Text(3), s.Text, mark)
	}
	of := fmt.Sprintf("%s of %s (sha256 %.12s)", p.o.Energy.Form, p.model.Name, p.model.SHA256)
	if a := r.answer; a != nil {
		for _, s := range a.Sentences {
			sentence(s)
		}
		b.WriteString(note)
		stopped := ""
		if a.Stopped != "" {
			stopped = "stopped early: " + a.Stopped + "; "
		}
		fmt.Fprintf(&b, "# %s%s, %d sequences in %.1f s\n", stopped, of, a.Sequences, a.Seconds)
		return p.write(b.String())
	}
	draws := p.draws(r)
	for _, d := range draws {
		sentence(d.Sentence)
	}
	b.WriteString(note)
	p.diagnostics(&b, r, len(draws), of)
	return p.write(b.String())
}

func (p *printer) diagnostics(b *strings.Builder, r result, draws int, of string) {
	d, s := r.draws.Diagnostics, p.o.Sampling
	if r.draws.Interrupted {
		fmt.Fprintf(b, "# interrupted after %d of %d draws of each chain\n", d.Steps/int64(len(r.problem.Blanks)), s.Steps)
	}
	fmt.Fprintf(b, "# %s\n", d.Verdict)
	fmt.Fprintf(b, "# %d draws: acceptance %s, hops %s, R-hat %s, bulk ESS %s (worst blank %s and %s)", draws,
		d.Acceptance.Text(2), d.Hops.Text(2), d.RHat.Text(2), d.ESSBulk.Text(0), d.RHatBlanks.Text(2), d.ESSBlanks.Text(0))
	if size := d.StepSize.Text(2); size != "NA" {
		fmt.Fprintf(b, ", step size %s", size)
	}
	fmt.Fprintf(b, ", %d evaluations in %.1f s\n", d.Evaluations, d.Seconds)
	fmt.Fprintf(b, "# %s on %s at temperature %v, %d chains, %d draws of each after %d of warm-up, seed %d\n",
		s.Sampler, of, p.o.Energy.Temperature, s.Chains, s.Steps, s.Warmup, s.Seed)
	if reg, err := samplers.Lookup(s.Sampler); err == nil && !reg.Exact {
		fmt.Fprintf(b, "# %s\n", run.NotExact(reg))
	}
}
