package infill

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// parse runs the command with args and returns the options that its run would get.
func parse(t *testing.T, a *app.App, args ...string) (*Options, error) {
	t.Helper()
	var got *Options
	cmd := New(a, func(_ context.Context, o *Options) error {
		got = o
		return nil
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.Execute()
	return got, err
}

func TestDefaults(t *testing.T) {
	o, err := parse(t, &app.App{}, "a [MASK]")
	if err != nil {
		t.Fatal(err)
	}
	c, e := o.Chains, o.Energy
	if o.Text != "a [MASK]" || o.File != "" || o.SeedSet || o.Format != "text" || o.Out != "" {
		t.Errorf("options %+v", o)
	}
	if c.Sampler != "dmala" || c.Chains != 25 || c.Steps != 50 || c.Warmup != 50 || c.Init != "mask" || c.Top != 5 || c.Pieces || len(c.Options) != 0 {
		t.Errorf("chains %+v", c)
	}
	if e.Model != "bert-books" || e.Form != "pll" || e.MaskEmbedding != "mask" || e.Gradient != "exact" || e.Temperature != 1 || e.MaxBatch != 0 {
		t.Errorf("energy %+v", e)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse(t, &app.App{}, "--file", "in.txt", "--model", "dir", "--energy", "mrf", "--mask-embedding", "zero", "--gradient", "direct",
		"--temperature", "0.5", "--max-batch", "8", "--sampler", "dula", "--step-size", "0.3", "--dense", "--chains", "3", "--steps", "4",
		"--warmup", "5", "--init", "random", "--pieces", "--top", "2", "--seed", "0", "--format", "jsonl", "--out", "out.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, e := o.Chains, o.Energy
	if o.Text != "" || o.File != "in.txt" || !o.SeedSet || o.Format != "jsonl" || o.Out != "out.txt" {
		t.Errorf("options %+v", o)
	}
	if c.Sampler != "dula" || c.Options["step-size"] != "0.3" || c.Options["dense"] != "true" || c.Chains != 3 || c.Steps != 4 || c.Warmup != 5 ||
		c.Init != "random" || !c.Pieces || c.Top != 2 {
		t.Errorf("chains %+v", c)
	}
	if e.Model != "dir" || e.Form != "mrf" || e.MaskEmbedding != "zero" || e.Gradient != "direct" || e.Temperature != 0.5 || e.MaxBatch != 8 {
		t.Errorf("energy %+v", e)
	}
}

func TestArguments(t *testing.T) {
	if o, err := parse(t, &app.App{}); err != nil || o.File != "-" {
		t.Errorf("no text: %v; want standard input", err)
	}
	for name, c := range map[string]struct {
		terminal bool
		args     []string
		say      string
	}{
		"no text at a terminal":  {true, nil, "no text"},
		"two arguments":          {false, []string{"a", "[MASK]"}, "quotes"},
		"an argument and a file": {false, []string{"a", "--file", "b"}, "one of them"},
	} {
		_, err := parse(t, &app.App{InTerminal: c.terminal}, c.args...)
		var usage *app.Error
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTexts(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"\n \n":              "",
		"a":                  "1:a",
		"a\nb\n":             "1:a 2:b",
		"\na\r\n\n  b \n\nc": "2:a 4:  b  6:c",
	} {
		o := &Options{App: &app.App{In: strings.NewReader(in)}, File: "-"}
		texts, err := o.texts()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			text, err := texts.next(context.Background())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(rune('0'+texts.number))+":"+text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestTextsInterrupted waits for a line that never comes.
func TestTextsInterrupted(t *testing.T) {
	in, keep := io.Pipe()
	defer keep.Close()
	o := &Options{App: &app.App{In: in}, File: "-"}
	texts, err := o.texts()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := texts.next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
