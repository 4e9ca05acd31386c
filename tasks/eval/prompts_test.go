package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/tasks/prompttune"
)

// promptOptions look for prompts of a text with a random CLIP of 60 tokens.
func promptOptions(t *testing.T, lengths []int, repeats int, names ...string) PromptOptions {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"energies/neural/clip/testdata/hugging/split-dynamo-18", "tasks/prompttune/testdata/tiny"} {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../..", from))); err != nil {
			t.Fatal(err)
		}
	}
	o := PromptOptions{Lengths: lengths, Goal: prompttune.Goal{Models: []string{dir}, Texts: []string{"red sand on ice"}}}
	o.Goal.Runtime.Threads = 1
	o.Search = prompttune.Search{Steps: 3, Beta: "0.1t", Chains: repeats, Top: 1}
	for _, name := range names {
		s := o.Search
		s.Sampler = name
		o.Entrants = append(o.Entrants, PromptEntrant{name, s})
	}
	return o
}

// TestRepeatsAreChains compares the repeats with prompttune.Run on the same chains: the best
// of them, with its text, is what that finds, and it is not the first chain's.
func TestRepeatsAreChains(t *testing.T) {
	o := promptOptions(t, []int{3}, 5, "dmala")
	search := &o.Entrants[0].Search
	search.Steps, search.Seed, o.Search.Seed = 25, 1, 1
	doc, err := prompttune.Run(t.Context(), prompttune.Config{Goal: o.Goal, Form: prompttune.Form{Length: 3}, Search: *search})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Prompts(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s, w := got.Searches[0], doc.Results[0]
	k := s.Winner()
	if int64(k) != w.Chain || float64(s.Best[k]) != w.U || s.Texts[k] != w.Text {
		t.Errorf("repeat %d: %v %q; prompt-tune has chain %d: %v %q", k, s.Best[k], s.Texts[k], w.Chain, w.U, w.Text)
	}
	if w.Chain == 0 {
		t.Error("the first chain is the best: choose another seed, or the test sees nothing")
	}
	if texts := slices.Compact(slices.Sorted(slices.Values(s.Texts))); len(texts) < 4 {
		t.Errorf("%d repeats ended with only %q", len(s.Texts), texts)
	}
}

// TestPromptsInterrupted ends a comparison after the last step of a search, and before the
// first one is finished: the result has what is finished then, and is nil without any.
func TestPromptsInterrupted(t *testing.T) {
	for _, c := range []struct {
		sampler      string
		length, step int64
		finished     []string // sampler and length
	}{
		{"gwg", 2, 1, nil},
		{"gwg", 2, 3, []string{"gwg 2"}},
		{"dmala", 2, 3, []string{"gwg 2", "dmala 2"}},
		{"gwg", 3, 3, []string{"gwg 2", "dmala 2", "gwg 3"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := promptOptions(t, []int{2, 3}, 2, "gwg", "dmala")
		o.Progress = func(sampler string, length int, step, _ int64) {
			if sampler == c.sampler && int64(length) == c.length && step == c.step {
				cancel()
			}
		}
		r, err := Prompts(ctx, o)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%+v: %v", c, err)
		}
		if c.finished == nil {
			if r != nil {
				t.Errorf("%+v: a result without a finished search", c)
			}
			continue
		}
		var names []string
		for _, s := range r.Searches {
			names = append(names, s.Sampler+" "+strconv.Itoa(s.Length))
			if len(s.Best) != 2 || s.Best[0] != s.Best[0] {
				t.Errorf("%+v: %s: best %v", c, s.Sampler, s.Best)
			}
		}
		if !r.Interrupted || !slices.Equal(names, c.finished) || !strings.HasPrefix(err.Error(), strconv.Itoa(len(names))+" of 4 searches finished: ") {
			t.Errorf("%+v: interrupted is %v, with %q: %v", c, r.Interrupted, names, err)
		}
	}
}
