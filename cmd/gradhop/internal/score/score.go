// Package score is the command that prints the log-density of texts.
package score

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Options are the flags and arguments of the command.
type Options struct {
	App    *app.App
	Energy run.Energy
	// Text is the argument; File names a file of texts, "-" for standard input. One of the
	// two is set.
	Text, File string
	Words      []int
	Format     string
	Out        string
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Energy: run.DefaultEnergy()}
	cmd := &cobra.Command{
		Use:   `score [flags] "text"`,
		Short: "Print the log-density of texts under a masked language model",
		Long: `Print the log-density of texts: the sum over tokens of the log-probability of each, masked
alone (--energy pll, the pseudo-log-likelihood of Salazar et al. 2020), of its raw score
(pll-raw), or of its raw score with nothing masked (mrf). It is in nats and not normalised.

The text is the argument, or the lines of --file, or the lines of standard input. A line
that begins with { is a JSON object with text and optionally words, the words to score,
split at white space and counted from 1. A line that fails is reported and the others go
on; the exit code is then 1.

Each line printed has the log-density, the log-density divided by the number of tokens,
and the text, with tabs between them; jsonl has the tokens too.`,
		Example: `  gradhop score "She opened the door."
  gradhop score --words 2 "She opened the door."
  gradhop score --file sentences.txt --format jsonl --out scores.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return app.Usagef("%d arguments; the text is one: put it in quotes", len(args))
			case len(args) == 1 && o.File != "":
				return app.Usagef("a text and --file are given; one of them is wanted")
			case len(args) == 0 && o.File == "" && a.InTerminal:
				return app.Usagef(`no text: give one as argument, --file, or lines on standard input`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Text = args[0]
			} else if o.File == "" {
				o.File = "-"
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.File, "file", "f", "", "`file` of texts, one a line; - is standard input")
	f.IntSliceVar(&o.Words, "words", nil, "`numbers` of the words to score, from 1 (default: all)")
	o.Energy.AddModelFlags(f)
	f.StringVar(&o.Format, "format", "text", "text (columns with tabs between them) or jsonl (an object a line)")
	f.StringVarP(&o.Out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// atOnce bounds the texts that are scored together.
const atOnce = 200

// input is a text with its place in the input.
type input struct {
	infill.Text
	line int
	err  error // of a line that cannot be read
}

// Run does what the options say. Errors: *app.Error, *app.OutputError, or those of
// package infill.
func Run(ctx context.Context, o *Options) (err error) {
	if o.Format != "text" && o.Format != "jsonl" {
		return app.Usagef("--format %q: want text or jsonl", o.Format)
	}
	lines, err := app.OpenLines(o.App, o.Text, o.File)
	if err != nil {
		return err
	}
	defer lines.Close()
	out, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	m, err := o.Energy.Open(ctx, o.App)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	var failed, of int
	for {
		batch, end := o.read(ctx, lines)
		if end != nil && !errors.Is(end, io.EOF) {
			return end
		}
		of += len(batch)
		if err := o.score(ctx, m, lines, batch, out, &failed); err != nil {
			return err
		}
		if end != nil {
			break
		}
	}
	if of == 0 {
		return app.Usagef("no text in %s", lines.Name)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if failed > 0 {
		return &app.Error{Code: 1, Err: fmt.Errorf("%d of %d inputs failed", failed, of)}
	}
	return nil
}

// read returns the next texts. end is io.EOF with the last ones.
func (o *Options) read(ctx context.Context, lines *app.Lines) (batch []input, end error) {
	for len(batch) < atOnce {
		text, err := lines.Next(ctx)
		if err != nil {
			return batch, err
		}
		in := input{Text: infill.Text{Text: text, Words: o.Words}, line: lines.Number}
		if lines.Number > 0 && strings.HasPrefix(strings.TrimSpace(text), "{") {
			in.Words = nil
			in.err = json.Unmarshal([]byte(text), &in.Text)
		}
		batch = append(batch, in)
	}
	return batch, nil
}

func (o *Options) score(ctx context.Context, m *infill.Model, lines *app.Lines, batch []input, out io.Writer, failed *int) error {
	var texts []infill.Text
	for _, in := range batch {
		texts = append(texts, in.Text)
	}
	scores, errs, err := m.Score(ctx, texts)
	if err != nil {
		return err
	}
	for k, s := range scores {
		if err := cmp.Or(batch[k].err, errs[k]); err != nil {
			if lines.Name == "" {
				return err
			}
			*failed++
			o.App.Errorf("%s:%d: %v", lines.Name, batch[k].line, err)
			continue
		}
		if err := o.print(out, batch[k].line, s); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) print(out io.Writer, line int, s infill.Score) error {
	if o.Format == "text" {
		_, err := fmt.Fprintf(out, "%s\t%s\t%s\n", s.LogP.Text(4), s.PerToken.Text(4), s.Text)
		return err
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Line int `json:"line,omitempty"`
		infill.Score
	}{line, s})
}
