package eval

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/prompttune"
)

// cancelAt is standard error on a terminal: it cancels a run when a progress line has all
// of the words.
type cancelAt struct {
	words  []string
	cancel context.CancelFunc
}

func (w *cancelAt) Write(b []byte) (int, error) {
	for _, word := range w.words {
		if !bytes.Contains(b, []byte(word)) {
			return len(b), nil
		}
	}
	w.cancel()
	return len(b), nil
}

// TestSearchesInterrupted ends runs at known places: after the last step of a search, whose
// progress line is always shown. What is finished then is written, and nothing else is.
func TestSearchesInterrupted(t *testing.T) {
	dir := tinyModel(t)
	for _, c := range []struct {
		at       []string // words of the progress line
		finished []string // sampler and length
	}{
		{[]string{"gwg, 2 blanks", "100%"}, []string{"gwg 2"}},
		{[]string{"dmala, 2 blanks", "100%"}, []string{"gwg 2", "dmala 2"}},
		{[]string{"gwg, 3 blanks", "100%"}, []string{"gwg 2", "dmala 2", "gwg 3"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		file := filepath.Join(t.TempDir(), "out.json")
		o := &PromptTuneOptions{
			App:     &app.App{Out: os.Stderr, Err: &cancelAt{c.at, cancel}, ErrTerminal: true, Threads: 1},
			Goal:    task.Goal{Models: []string{dir}, Texts: []string{"red sand on ice"}},
			Search:  prompttune.DefaultSearch(),
			Lengths: []int{2, 3}, Repeats: 2, Samplers: []string{"gwg", "dmala"}, SeedSet: true, Format: "json", Out: file,
		}
		o.Search.Steps, o.Search.Beta = 3, "0.1t"
		err := RunPromptTune(ctx, o)
		var early *InterruptedError
		if !errors.As(err, &early) || early.Finished != len(c.finished) || early.Of != 4 || !errors.Is(err, context.Canceled) {
			t.Fatalf("%q: %v", c.at, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got Searches
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got.Searches {
			names = append(names, s.Sampler+" "+strconv.Itoa(s.Length))
			if len(s.Best) != 2 || s.Best[0] != s.Best[0] {
				t.Errorf("%q: %s: best %v", c.at, s.Sampler, s.Best)
			}
		}
		if !got.Interrupted || strings.Join(names, ", ") != strings.Join(c.finished, ", ") {
			t.Errorf("%q: interrupted is %v, with %q", c.at, got.Interrupted, names)
		}
	}
}

// TestSearchesInterruptedEarly ends a run before a search is finished, before its start and
// at the first step, whose progress line is always shown: nothing is written and no file is
// left.
func TestSearchesInterruptedEarly(t *testing.T) {
	for _, at := range []string{"", "gwg, 2 blanks"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if at == "" {
			cancel()
		}
		out := t.TempDir()
		o := &PromptTuneOptions{
			App:     &app.App{Out: os.Stderr, Err: &cancelAt{[]string{at}, cancel}, ErrTerminal: true, Threads: 1},
			Goal:    task.Goal{Models: []string{tinyModel(t)}, Texts: []string{"red sand on ice"}},
			Search:  prompttune.DefaultSearch(),
			Lengths: []int{2}, Repeats: 2, Samplers: []string{"gwg"}, SeedSet: true, Format: "json", Out: filepath.Join(out, "out.json"),
		}
		o.Search.Steps = 3
		err := RunPromptTune(ctx, o)
		var early *InterruptedError
		if errors.As(err, &early) || !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", at, err)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%q: %v is left (%v)", at, left, err)
		}
	}
}
