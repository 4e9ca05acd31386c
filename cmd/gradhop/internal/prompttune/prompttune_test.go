package prompttune

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// parse runs the command with args and returns the options that its run would get.
func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	var got *Options
	cmd := New(&app.App{}, func(_ context.Context, o *Options) error {
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

func TestFlags(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if o.SeedSet || o.Search.Beta != "" || o.Format != "text" || o.Out != "" || o.Form.Length != 0 || o.Form.Tokens != "listed" ||
		o.Search.Sampler != "search" || o.Search.Chains != 1 || o.Search.Steps != 1180 || o.Search.Top != 5 || o.Search.Patience != 0 || len(o.Search.Options) != 0 {
		t.Errorf("defaults %+v", o)
	}
	if err := o.Search.Check(); err != nil {
		t.Error(err)
	}
	if err := o.Search.Try(1); err != nil {
		t.Error(err)
	}
	o, err = parse(t, "--images", "a", "--images", "b:-1", "--target-text", "x, y", "--model", "m", "--model", "n:2", "--no-image-cache", "--max-pixels", "9",
		"--max-batch", "4", "-l", "3", "--prefix", "p", "--suffix", "s", "--template", "_", "--tokens", "all", "--allow", "a,b", "--allow", "c", "--block", "d",
		"--round-trip", "--sampler", "sgdld", "--jump", "single", "--no-cache", "--image-batch", "7", "--beta", "2", "--chains", "5", "--steps", "6",
		"--warmup", "1", "--top", "2", "--patience", "3", "--time-limit", "2m", "--seed", "0", "--format", "jsonl", "-o", "run", "--checkpoint-every", "1s", "--chain-ids", "0-3")
	if err != nil {
		t.Fatal(err)
	}
	g, p, s := o.Goal, o.Form, o.Search
	if !slices.Equal(g.Images, []string{"a", "b:-1"}) || !slices.Equal(g.Texts, []string{"x, y"}) || !slices.Equal(g.Models, []string{"m", "n:2"}) ||
		!g.NoImageCache || g.MaxPixels != 9 || g.MaxBatch != 4 {
		t.Errorf("targets %+v", g)
	}
	if p.Length != 3 || p.Prefix != "p" || p.Suffix != "s" || p.Template != "_" || p.Tokens != "all" ||
		!slices.Equal(p.Allow, []string{"a,b", "c"}) || !slices.Equal(p.Block, []string{"d"}) || !p.RoundTrip {
		t.Errorf("prompt %+v", p)
	}
	if s.Sampler != "sgdld" || s.Options["jump"] != "single" || s.Options["no-cache"] != "true" || s.ImageBatch != 7 || s.Beta != "2" ||
		s.Chains != 5 || s.Steps != 6 || s.Warmup != 1 || s.Top != 2 || s.Patience != 3 || s.TimeLimit != 2*time.Minute {
		t.Errorf("search %+v", s)
	}
	if !o.SeedSet || o.Format != "jsonl" || o.Out != "run" || o.Resume != "" || o.Every != time.Second || o.ChainIDs != "0-3" {
		t.Errorf("options %+v", o)
	}
}

// tiny is the folder of a random CLIP of 60 tokens, and options that run on it.
func tiny(t *testing.T) (*Options, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"energies/neural/clip/testdata/hugging/split-dynamo-18", "tasks/prompttune/testdata/tiny"} {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../..", from))); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out, Err: io.Discard, Threads: 1}, Search: DefaultSearch(), SeedSet: true, Format: "jsonl"}
	o.Goal.Models, o.Goal.Texts = []string{dir}, []string{"red sand on ice", "the sea:-0.5"}
	o.Form.Length, o.Search.Steps, o.Search.Chains, o.Search.Beta = 3, 40, 4, "0.1t"
	o.Search.Sampler = "dmala" // which moves several blanks at once: there is much to improve
	return o, &out
}

// TestLive prints prompts as they are found where a person sees them, and nowhere else.
func TestLive(t *testing.T) {
	for _, c := range []struct{ terminal, quiet, live bool }{{true, false, true}, {false, false, false}, {true, true, false}} {
		o, out := tiny(t)
		var seen bytes.Buffer
		o.Format, o.App.Err, o.App.ErrTerminal, o.App.Quiet = "text", &seen, c.terminal, c.quiet
		if err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		best, _, _ := strings.Cut(out.String(), "\n")
		if live := strings.Contains(seen.String(), best); best == "" || live != c.live || strings.Contains(seen.String(), "best ") != c.live {
			t.Errorf("%+v: standard output %q, standard error %q", c, out, seen.String())
		}
		if n := strings.Count(out.String(), "\n"); n != 5+3 {
			t.Errorf("%+v: %d lines on standard output", c, n)
		}
	}
}

// TestResumeLive: where a person sees prompts as they are found, those that were found
// before are not shown again.
func TestResumeLive(t *testing.T) {
	o, _ := tiny(t)
	o.Search.Steps, o.Out = 11, filepath.Join(t.TempDir(), "run")
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	o.Format, o.App.Err, o.App.ErrTerminal, o.Resume, o.Out = "text", &seen, true, o.Out, ""
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	shown := strings.Contains(seen.String(), "\n  ") || strings.HasPrefix(seen.String(), "  ")
	if shown || !strings.Contains(seen.String(), "all 11 steps are made") || !strings.Contains(seen.String(), "reading ") {
		t.Errorf("standard error %q", seen.String())
	}
}

// TestOutputFails ends a run whose output cannot be written.
func TestOutputFails(t *testing.T) {
	o, _ := tiny(t)
	o.App.Out = failing{}
	var bad *app.OutputError
	if err := Run(t.Context(), o); !errors.As(err, &bad) || bad.Before {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
