package infill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// tiny is the folder of a random model of 80 words.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{
		"../../../../energies/neural/mlm/testdata/bert/legacy-17-sdpa/model.onnx",
		"../../../../tasks/infill/testdata/tiny/vocab.txt",
		"../../../../tasks/infill/testdata/tiny/config.json",
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// terminal is a standard error that calls seen with all that was written to it.
type terminal struct {
	bytes.Buffer
	seen func(string)
}

func (w *terminal) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if w.seen != nil {
		w.seen(w.String())
	}
	return n, err
}

func options(t *testing.T, a *app.App) *Options {
	o := &Options{App: a, Energy: run.DefaultEnergy(), Format: "json", Text: "the [MASK] sat", Rank: "logp", Draws: 800, Sampling: task.DefaultDraws(800), SeedSet: true}
	o.Search.Top = 5
	o.Energy.Model = tiny(t)
	a.Threads = 1
	return o
}

// TestProgress draws a bar on a terminal, and nowhere else.
func TestProgress(t *testing.T) {
	for _, isTerminal := range []bool{true, false} {
		var out, stderr bytes.Buffer
		o := options(t, &app.App{Out: &out, Err: &stderr, ErrTerminal: isTerminal, Columns: 80})
		if err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(stderr.String(), "125 of 125 steps"); got != isTerminal {
			t.Errorf("terminal %v: standard error %q", isTerminal, stderr.String())
		}
		if isTerminal && !strings.HasSuffix(stderr.String(), "\r\x1b[K") {
			t.Error("the bar is left on the screen")
		}
		if !json.Valid(out.Bytes()) {
			t.Errorf("standard output %q", out.String())
		}
	}
}

// TestInterruptedOutput stops a run when its bar shows that it is under way.
func TestInterruptedOutput(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr := &terminal{seen: func(s string) {
		if strings.Contains(s, "line 2") {
			cancel()
		}
	}}
	a := &app.App{In: strings.NewReader("a [MASK]\nthe [MASK] sat\nhe [MASK]\n"), Err: stderr, ErrTerminal: true}
	o := options(t, a)
	o.Text, o.File, o.Out = "", "-", filepath.Join(t.TempDir(), "out.json")
	if err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	b, err := os.ReadFile(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Line        int
		Interrupted bool
		Draws       []any
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Interrupted || !list[1].Interrupted || list[1].Line != 2 || len(list[0].Draws) != 800 {
		t.Errorf("%d results, the first with %d draws, the second interrupted: %v", len(list), len(list[0].Draws), list[len(list)-1].Interrupted)
	}
}

// TestQuiet prints data only.
func TestQuiet(t *testing.T) {
	var out, stderr bytes.Buffer
	o := options(t, &app.App{Out: &out, Err: &stderr, ErrTerminal: true, Quiet: true})
	o.Format = "text"
	if err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 || !strings.Contains(out.String(), "sat") {
		t.Errorf("standard error %q, output %q", stderr.String(), out.String())
	}
}
