package prompttune

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/internal/cliptest"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// drafted is a small job with the random CLIP of package cliptest as its draft, of the same tokens.
func drafted(t *testing.T) *job {
	t.Helper()
	o, _ := small(t)
	draft := filepath.Join(t.TempDir(), "draft")
	if err := os.CopyFS(draft, os.DirFS(o.Goal.Models[0])); err != nil {
		t.Fatal(err)
	}
	if err := cliptest.Write(draft); err != nil {
		t.Fatal(err)
	}
	o.Search.Draft, o.Search.Options = draft, samplers.Settings{"draft-steps": "2"}
	o.Out = filepath.Join(t.TempDir(), "run")
	return o
}

// TestDraftRecord: results name the draft and what each stage rejects. A run goes on with the same
// draft, to the draws of a whole run, and with no other.
func TestDraftRecord(t *testing.T) {
	whole := drafted(t)
	if err := launch(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want := outcome(t, whole, whole.out)
	var doc Document
	if err := json.Unmarshal([]byte(read(t, whole.Out, ResultsFile)), &doc); err != nil {
		t.Fatal(err)
	}
	s, g := doc.Settings, doc.Diagnostics
	if !strings.Contains(s.Draft, " sha256:") || s.Sampler != "two-stage" || s.SamplerOptions["inner"] != "dmala" || s.SamplerOptions["draft-steps"] != "2" {
		t.Errorf("settings %+v", s)
	}
	if g.DraftRejected == nil || !(*g.DraftRejected > 0 && *g.DraftRejected < 1) || !(*g.ModelRejected > 0 && *g.ModelRejected < 1) {
		t.Errorf("rejected %v and %v", g.DraftRejected, g.ModelRejected)
	}
	part := *whole
	part.Search.Steps, part.Search.Beta, part.Out = 10, "0.1t", filepath.Join(t.TempDir(), "run")
	if err := launch(t.Context(), &part); err != nil {
		t.Fatal(err)
	}
	again := part
	again.Search.Steps = whole.Search.Steps
	again.Resume, again.Out = part.Out, ""
	again.out.Reset()
	if err := launch(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, "resumed", outcome(t, &again, again.out), want)
	for _, other := range []string{"", again.Goal.Models[0]} {
		if again.Search.Draft = other; other == "" {
			again.Search.Options = nil
		}
		if err := launch(t.Context(), &again); !errors.As(err, new(*store.MismatchError)) {
			t.Errorf("draft %q: %v", other, err)
		}
	}
}

// TestDraftRefused: options that cannot be, and a model that reads other tokens.
func TestDraftRefused(t *testing.T) {
	base := drafted(t)
	for want, change := range map[string]func(*job){
		"draft: cpu: the model itself runs on cpu":                                  func(o *job) { o.Search.Draft = "cpu" },
		"draft: openvino:cpu,f8: want a precision":                                  func(o *job) { o.Search.Draft = "openvino:cpu,f8" },
		"sampler two-stage: it needs a draft":                                       func(o *job) { o.Search.Draft, o.Search.Sampler = "", "two-stage" },
		`search is an optimiser, which accepts nothing; name a sampler such as mtm`: func(o *job) { o.Search.Sampler = "search" },
		"the model has none; name another draft":                                    func(o *job) { o.Search.Draft = "int8" },
		"they have different vocabularies":                                          func(o *job) { o.Search.Draft = "clip-pictures" },
		"it is not a folder":                                                        func(o *job) { o.Search.Draft = "./absent" },
	} {
		bad := *base
		change(&bad)
		if err := launch(t.Context(), &bad); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := os.Stat(base.Out); err == nil {
			t.Fatalf("%s: a folder is left", want)
		}
	}
}
