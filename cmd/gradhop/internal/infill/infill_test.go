package infill

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// parse runs the command with args and returns the options that its run would get.
func parse(t *testing.T, a *app.App, args ...string) (*Options, error) {
	t.Helper()
	var got *Options
	cmd := New(a, func(_ context.Context, o *Options) error {
		got = o
		return o.check()
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
	if o.Text != "a [MASK]" || o.File != "" || o.SeedSet || o.Format != "text" || o.Out != "" || o.Draws != 0 || o.Rank != "logp" {
		t.Errorf("options %+v", o)
	}
	if want := (task.SearchOptions{Top: 5, TimeLimit: 20 * time.Second}); !reflect.DeepEqual(o.Search, want) {
		t.Errorf("search %+v", o.Search)
	}
	if e := o.Energy; e.Model != "bert-books" || e.Form != "pll" || e.MaskEmbedding != "mask" || e.Gradient != "exact" || e.Temperature != 1 || e.MaxBatch != 0 {
		t.Errorf("energy %+v", e)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse(t, &app.App{}, "--file", "in.txt", "--model", "dir", "--energy", "mrf", "--mask-embedding", "zero", "--gradient", "direct",
		"--temperature", "0.5", "--max-batch", "8", "--sampler", "dula", "--step-size", "0.3", "--dense", "--chains", "3", "--draws", "10",
		"--warmup", "5", "--init", "random", "--pieces", "--top", "2", "--seed", "0", "--format", "jsonl", "--out", "out.txt",
		"--no-punctuation", "--no-repeat", "--allow", "a,b", "--block", "c", "--rank", "per-word", "--beam", "7", "--time-limit", "1m")
	if err != nil {
		t.Fatal(err)
	}
	c, e, w := o.Sampling, o.Energy, o.Words
	if o.Text != "" || o.File != "in.txt" || !o.SeedSet || o.Format != "jsonl" || o.Out != "out.txt" || o.Draws != 10 {
		t.Errorf("options %+v", o)
	}
	if c.Sampler != "dula" || c.Options["step-size"] != "0.3" || c.Options["dense"] != "true" || c.Chains != 3 || c.Steps != 4 || c.Warmup != 5 || c.Init != "random" {
		t.Errorf("sampling %+v", c)
	}
	if e.Model != "dir" || e.Form != "mrf" || e.MaskEmbedding != "zero" || e.Gradient != "direct" || e.Temperature != 0.5 || e.MaxBatch != 8 {
		t.Errorf("energy %+v", e)
	}
	if !w.Pieces || !w.NoPunctuation || !w.NoRepeat || !reflect.DeepEqual(w.Allow, []string{"a", "b"}) || !reflect.DeepEqual(w.Block, []string{"c"}) {
		t.Errorf("words %+v", w)
	}
	if want := (task.SearchOptions{Top: 2, Beam: 7, PerWord: true, TimeLimit: time.Minute}); !reflect.DeepEqual(o.Search, want) {
		t.Errorf("search %+v", o.Search)
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
		"an option of a sampler": {false, []string{"a", "--step-size", "1"}, "--draws"},
	} {
		_, err := parse(t, &app.App{InTerminal: c.terminal}, c.args...)
		var usage *app.Error
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
