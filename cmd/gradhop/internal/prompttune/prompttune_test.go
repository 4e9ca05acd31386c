package prompttune

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
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
	if o.SeedSet || o.Search.BetaSet || o.Prompt.LengthSet || o.Format != "text" || o.Out != "" || o.Prompt.Length != 8 || o.Prompt.Tokens != "listed" ||
		o.Search.Chains != 8 || o.Search.Steps != 500 || o.Search.Top != 5 || o.Search.Patience != 0 || len(o.Search.Options) != 0 {
		t.Errorf("defaults %+v", o)
	}
	if err := o.Search.check(); err != nil {
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
	g, p, s := o.Targets, o.Prompt, o.Search
	if !slices.Equal(g.Images, []string{"a", "b:-1"}) || !slices.Equal(g.Texts, []string{"x, y"}) || !slices.Equal(g.Models, []string{"m", "n:2"}) ||
		!g.NoImageCache || g.MaxPixels != 9 || g.MaxBatch != 4 {
		t.Errorf("targets %+v", g)
	}
	if p.Length != 3 || !p.LengthSet || p.Prefix != "p" || p.Suffix != "s" || p.Template != "_" || p.Tokens != "all" ||
		!slices.Equal(p.Allow, []string{"a,b", "c"}) || !slices.Equal(p.Block, []string{"d"}) || !p.RoundTrip {
		t.Errorf("prompt %+v", p)
	}
	if s.Sampler != "sgdld" || s.Options["jump"] != "single" || s.Options["no-cache"] != "true" || s.ImageBatch != 7 || s.Beta != "2" || !s.BetaSet ||
		s.Chains != 5 || s.Steps != 6 || s.Warmup != 1 || s.Top != 2 || s.Patience != 3 || s.TimeLimit != 2*time.Minute {
		t.Errorf("search %+v", s)
	}
	if !o.SeedSet || o.Format != "jsonl" || o.Out != "run" || o.Resume != "" || o.Every != time.Second || o.ChainIDs != "0-3" {
		t.Errorf("options %+v", o)
	}
}

func TestModels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m:2")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err) // such a name is not possible everywhere
	}
	names, weights, err := (&Targets{Models: []string{"a", "b:2", dir, "c:x"}}).models()
	if err != nil || !slices.Equal(names, []string{"a", "b", dir, "c:x"}) || !slices.Equal(weights, []float64{0.2, 0.4, 0.2, 0.2}) {
		t.Errorf("%q, %v, %v", names, weights, err)
	}
	for _, bad := range []string{"a:0", "a:-1", "a:Inf", "a:NaN"} {
		var usage *app.Error
		if _, _, err := (&Targets{Models: []string{bad}}).models(); !errors.As(err, &usage) {
			t.Errorf("%s: %v", bad, err)
		}
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
	o := &Options{App: &app.App{Out: &out, Err: io.Discard, Threads: 1}, Prompt: DefaultPrompt(), Search: DefaultSearch(), SeedSet: true, Format: "jsonl"}
	o.Targets.Models, o.Targets.Texts = []string{dir}, []string{"red sand on ice", "the sea:-0.5"}
	o.Prompt.Length, o.Search.Steps, o.Search.Chains, o.Search.Beta = 3, 40, 4, "0.1t"
	o.Search.Sampler = "dmala" // which moves several blanks at once: there is much to improve
	return o, &out
}

// TestImprovements reads the lines of a run: each beats those before, and the last is the
// best of the whole.
func TestImprovements(t *testing.T) {
	o, out := tiny(t)
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	var doc Document
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 3 || len(doc.Results) != 5 {
		t.Fatalf("%d lines, %d results", len(lines), len(doc.Results))
	}
	var last Result
	for i, line := range lines[:len(lines)-1] {
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if i > 0 && (r.Cosine <= last.Cosine || r.Step <= last.Step) {
			t.Errorf("line %d: %+v after %+v", i+1, r, last)
		}
		if want := 0.1 * float64(r.Step) * r.Cosine; r.LogP-want > 1e-9 || want-r.LogP > 1e-9 {
			t.Errorf("line %d: logp %g at step %d, want %g", i+1, r.LogP, r.Step, want)
		}
		last = r
	}
	if best := doc.Results[0]; best.Text != last.Text || best.Cosine != last.Cosine || best.Step != last.Step {
		t.Errorf("the best is %+v, the last improvement %+v", best, last)
	}
	if e := doc.Diagnostics.Evaluations; e.Gradient != int64(4*41) || e.Total() != e.Gradient {
		t.Errorf("%+v; want the gradient at every chain's state of every step and at the start", e)
	}
}

// TestDraws looks up each result in the draws of the run.
func TestDraws(t *testing.T) {
	o, out := tiny(t)
	o.Out, o.Format = filepath.Join(t.TempDir(), "run"), "json"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var doc Document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var tokens []struct {
		ID    int32
		Piece string
	}
	text, err := os.ReadFile(filepath.Join(o.Out, tokensFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &tokens); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range doc.Results {
		u, err := r.Series(store.Sampling, "lp")
		if err != nil {
			t.Fatal(err)
		}
		step, found := int64(0), false
		for codes, err := range r.States(store.Sampling, int(want.Chain)) {
			if err != nil {
				t.Fatal(err)
			}
			if step++; step != want.Step {
				continue
			}
			found = true
			var ids []int32
			var words []string
			for _, k := range codes {
				ids, words = append(ids, tokens[k].ID), append(words, strings.TrimSuffix(tokens[k].Piece, "</w>"))
			}
			if lp := u[want.Chain][step-1]; !slices.Equal(ids, want.IDs) || strings.Join(words, " ") != want.Text || lp != want.Cosine {
				t.Errorf("chain %d has %v (U %g) at step %d; the result is %+v", want.Chain, words, lp, step, want)
			}
		}
		if !found {
			t.Errorf("no draw of chain %d, step %d", want.Chain, want.Step)
		}
	}
}

// TestWeights gives every model the weights of all targets.
func TestWeights(t *testing.T) {
	o, _ := tiny(t)
	const pictures = "../../../../tasks/pictures/testdata/"
	o.Targets.NoImageCache = true
	o.Targets.Images = []string{pictures + "rgb.png:3", pictures + "grey.png:-0.25"}
	o.Targets.Models = []string{o.Targets.Models[0], o.Targets.Models[0] + ":3"}
	r, err := Open(t.Context(), o.App, &o.Targets, &o.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, m := range r.members {
		if !slices.Equal(m.Targets.Weights, []float64{3, -0.25, 1, -0.5}) || m.Weight != []float64{0.25, 0.75}[i] {
			t.Errorf("model %d has weight %g and targets %v", i, m.Weight, m.Targets.Weights)
		}
		if v := m.Targets.Vectors; len(v) != 4 || slices.Equal(v[0], v[1]) || slices.Equal(v[2], v[3]) {
			t.Errorf("model %d: %d vectors", i, len(v))
		}
	}
}

// TestEstimates scores every text of a run whose U is a noisy one.
func TestEstimates(t *testing.T) {
	o, out := tiny(t)
	o.Search.Sampler, o.Search.ImageBatch, o.Search.Steps, o.Format = "sgdld", 1, 10, "json"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var doc Document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Diagnostics.Rescored == 0 {
		t.Error("no text was scored apart")
	}
	r, err := Open(t.Context(), o.App, &o.Targets, &o.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, p := range doc.Results {
		got, err := r.Problem.Score(t.Context(), [][]int32{p.IDs})
		if err != nil || math.Abs(got[0]-p.Cosine) > 1e-5 {
			t.Errorf("%q has cosine %g, alone %v (%v)", p.Text, p.Cosine, got, err)
		}
	}
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
		if n := strings.Count(out.String(), "\n"); n != 5+2 {
			t.Errorf("%+v: %d lines on standard output", c, n)
		}
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
