package infill

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestDraftAuto: whatever measurements choose, the run is that of the options that are recorded, and
// it continues with them.
func TestDraftAuto(t *testing.T) {
	const text = "the [MASK] [MASK] on"
	m := load(t)
	o := Options{Draws: 16, Sampling: DefaultDraws(16), Folder: filepath.Join(t.TempDir(), "run"), Version: "test"}
	o.Sampling.Draft, o.Sampling.Options, o.Sampling.Seed = "auto", map[string]string{"draft-steps": "auto"}, 5
	var lines []string
	o.Log = func(line string) { lines = append(lines, line) }
	d, err := m.Fill(t.Context(), text, o)
	if err != nil {
		t.Fatal(err)
	}
	if log := strings.Join(lines, "\n"); !strings.Contains(log, "no draft: ") || !strings.Contains(log, "draft int8: model tiny: ort: provider cpu,int8 rounds large products") || !strings.Contains(log, "with it and seed 5 the run is repeated") {
		t.Errorf("log %s", log)
	}
	saved, err := LoadSaved(o.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if s := saved.Sampling; s.Draft == "auto" || s.Options["draft-steps"] == "auto" || (s.Draft == "") != (s.Options["draft-steps"] == "") {
		t.Errorf("draft %q, options %v are recorded", s.Draft, s.Options)
	}
	again := Options{Words: saved.Words, Draws: saved.Draws, Sampling: saved.Sampling, Version: "test"}
	e, err := load(t).Fill(t.Context(), text, again)
	if err != nil || !reflect.DeepEqual(e.Draws, d.Draws) {
		t.Errorf("by the options recorded: %v, other draws", err)
	}
	again.Sampling.Draft, again.Sampling.Options, again.Folder, again.Resume = "auto", nil, o.Folder, true
	if e, err := m.Fill(t.Context(), text, again); err != nil || !reflect.DeepEqual(e.Draws, d.Draws) {
		t.Errorf("resumed by auto: %v", err)
	}
}
