package infill

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/samplers/store"
)

// TestFolder: the folder of a run holds every sweep, of which the sentences are a part, and a
// few draws are enough to judge mixing.
func TestFolder(t *testing.T) {
	o := Options{Draws: 6, Sampling: DefaultDraws(6), Folder: filepath.Join(t.TempDir(), "run"), Version: "test"}
	o.Sampling.Seed = 5
	m := load(t)
	d, err := m.Fill(t.Context(), "the [MASK] [MASK] on", o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(d.Diagnostics.Verdict, "not known") || len(d.Draws) != 6 {
		t.Errorf("%d draws, verdict %q", len(d.Draws), d.Diagnostics.Verdict)
	}
	if damage, err := store.Verify(o.Folder); err != nil || len(damage) > 0 {
		t.Errorf("damage %v, %v", damage, err)
	}
	r, err := store.Open(o.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); r.Draws(store.Sampling) != minSweeps || h.Settings["text"] != d.Input || h.ModelSHA256 != d.Model.SHA256 || h.Versions["onnxruntime"] == "" {
		t.Errorf("%d draws of each chain, header %+v", r.Draws(store.Sampling), h)
	}
	var tokens Tokens
	if err := store.ReadSealed(o.Folder, TokensFile, &tokens); err != nil {
		t.Fatal(err)
	}
	for chain, s := range d.Draws { // one of each chain: the last sweep
		last, err := r.Last(store.Sampling, chain)
		if err != nil {
			t.Fatal(err)
		}
		words := make([]string, len(last))
		for i, code := range last {
			words[i] = tokens.Pieces[code]
		}
		if !slices.Equal(words, s.Fills) {
			t.Errorf("chain %d ends at %v, its sentence has %v", chain, words, s.Fills)
		}
	}
	text, err := os.ReadFile(filepath.Join(o.Folder, DocumentFile))
	if err != nil || !json.Valid(text) || !strings.Contains(string(text), d.Draws[0].Text) {
		t.Errorf("%s: %v\n%s", DocumentFile, err, text)
	}
	if _, err := m.Fill(t.Context(), "the [MASK] [MASK] on", o); err == nil {
		t.Error("a second run overwrote the first")
	}
}
