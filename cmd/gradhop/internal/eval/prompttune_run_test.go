package eval

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/prompttune"
)

// tinyModel is the folder of a random CLIP of 60 tokens.
func tinyModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"energies/neural/clip/testdata/hugging/split-dynamo-18", "tasks/prompttune/testdata/tiny"} {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../..", from))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRepeatsAreChains holds the repeats against gradhop prompt-tune on the same chains:
// the best of them, with its text, is what that prints, and it is not the first chain's.
func TestRepeatsAreChains(t *testing.T) {
	dir := tinyModel(t)
	targets := task.Goal{Models: []string{dir}, Texts: []string{"red sand on ice"}}
	search := prompttune.DefaultSearch()
	search.Sampler, search.Steps, search.Seed, search.Chains, search.Top, search.Beta = "dmala", 25, 1, 5, 1, "0.1t"
	var one, all bytes.Buffer
	p := &prompttune.Options{App: &app.App{Out: &one, Err: io.Discard, Threads: 1}, Goal: targets, Search: search, SeedSet: true, Format: "json"}
	p.Form.Length = 3
	if err := prompttune.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	o := &PromptTuneOptions{App: &app.App{Out: &all, Err: io.Discard, Threads: 1}, Goal: targets, Lengths: []int{3},
		Repeats: 5, Samplers: []string{"dmala"}, Search: search, SeedSet: true, Format: "json"}
	if err := RunPromptTune(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var want task.Document
	var got Searches
	if err := json.Unmarshal(one.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	s, w := got.Searches[0], want.Results[0]
	k := best(s.Best)
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
