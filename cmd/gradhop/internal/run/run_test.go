package run

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
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

func open(t *testing.T, change func(*Energy)) *Runner {
	t.Helper()
	e := DefaultEnergy()
	e.Model = tiny(t)
	if change != nil {
		change(&e)
	}
	r, err := Open(context.Background(), e, hub.Options{}, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func short() Chains {
	c := DefaultChains()
	c.Chains, c.Steps, c.Warmup, c.Seed = 4, 12, 6, 3
	return c
}

// settled is a result without what may differ between equal runs.
func settled(r *Result) Result {
	c := *r
	c.Diagnostics.Seconds = 0
	for _, n := range []*Number{&c.Diagnostics.RHat, &c.Diagnostics.ESSBulk, &c.Diagnostics.RHatBlanks, &c.Diagnostics.ESSBlanks, &c.Diagnostics.StepSize} {
		if !n.finite() {
			*n = -1 // NaN is not equal to itself
		}
	}
	return c
}

// TestConcurrent runs texts of several lengths at once on one model.
func TestConcurrent(t *testing.T) {
	texts := []string{"the [MASK] sat", "a [MASK] and a [MASK] ran", "[MASK]", "he [MASK] [MASK] [MASK] ."}
	alone := make([]*Result, len(texts))
	r := open(t, func(e *Energy) { e.MaxBatch = 3 })
	for k, text := range texts {
		var err error
		if alone[k], err = open(t, nil).Infill(context.Background(), text, short(), nil); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for k, text := range texts {
		wg.Go(func() {
			got, err := r.Infill(context.Background(), text, short(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if !reflect.DeepEqual(settled(got), settled(alone[k])) {
				t.Errorf("%s: alone %+v, among others %+v", text, settled(alone[k]), settled(got))
			}
		})
	}
	wg.Wait()
}

func TestInterrupted(t *testing.T) {
	r := open(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	res, err := r.Infill(ctx, "the [MASK] sat", short(), func(done, total int) {
		if total != 18 {
			t.Errorf("%d steps in all, want 18", total)
		}
		if done == 10 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || res == nil || !res.Interrupted || res.Diagnostics.Steps != 4 || len(res.Results) == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	// What was done until then is what a run of that length does.
	c := short()
	c.Steps = 4
	want, err := r.Infill(context.Background(), "the [MASK] sat", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Interrupted = true
	if !reflect.DeepEqual(settled(res), settled(want)) {
		t.Errorf("interrupted %+v, whole %+v", settled(res), settled(want))
	}
	if res, err := r.Infill(ctx, "the [MASK] sat", short(), nil); res != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before the first step: %+v, %v", res, err)
	}
}

// TestTemperature checks that log-densities are those of temperature one.
func TestTemperature(t *testing.T) {
	cold := open(t, func(e *Energy) { e.Temperature = 0.25 })
	warm := open(t, nil)
	c := short()
	c.Sampler, c.Steps, c.Top = "gwg", 200, 200
	at := map[string]Number{}
	a, err := cold.Infill(context.Background(), "the [MASK] sat", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := warm.Infill(context.Background(), "the [MASK] sat", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range b.Results {
		at[s.Text] = s.LogP
	}
	both := 0
	for _, s := range a.Results {
		if p, ok := at[s.Text]; ok {
			both++
			if math.Abs(float64(p-s.LogP)) > 1e-9 {
				t.Errorf("%s: log-density %v at temperature 0.25, %v at 1", s.Text, s.LogP, p)
			}
		}
	}
	if both == 0 {
		t.Error("no sentence in common")
	}
}

// TestSamplers runs every registered sampler, but those that ask for more than a masked
// language model has; they are refused before anything is loaded.
func TestSamplers(t *testing.T) {
	r := open(t, nil)
	for _, name := range samplers.Names() {
		c := short()
		c.Sampler = name
		reg, err := samplers.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Check()
		if !infillCan.Answers.Has(reg.Needs) || name == "pez" {
			if err == nil {
				t.Errorf("%s, which needs %s: %v", name, reg.Needs, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		res, err := r.Infill(context.Background(), "the [MASK] sat", c, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res.Diagnostics.Evaluations == 0 || len(res.Results) == 0 {
			t.Errorf("%s: %+v", name, res)
		}
		if Record(r.Energy, c, "cpu").Exact != reg.Exact {
			t.Errorf("%s: the record says exact %v", name, !reg.Exact)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		n          Number
		json, text string
	}{
		{0.1, "0.1", "0.10"},
		{Number(math.NaN()), "null", "NA"},
		{Number(math.Inf(1)), "null", "NA"},
		{Number(math.Inf(-1)), "null", "NA"},
	} {
		b, err := json.Marshal(c.n)
		if err != nil || string(b) != c.json || c.n.Text(2) != c.text {
			t.Errorf("%v: %s and %s (%v)", float64(c.n), b, c.n.Text(2), err)
		}
	}
}

func TestTryReportsRuntimeErrors(t *testing.T) {
	e := DefaultEnergy()
	e.Model = tiny(t)
	r, err := Open(context.Background(), e, hub.Options{}, ort.Options{Provider: "tpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var usage *ort.UsageError
	if err := r.Try(context.Background()); !errors.As(err, &usage) {
		t.Errorf("%v", err)
	}
	if err := open(t, nil).Try(context.Background()); err != nil {
		t.Error(err)
	}
	var input infill.InputError
	if _, err := r.Infill(context.Background(), "nothing", short(), nil); !errors.As(err, &input) {
		t.Errorf("%v", err)
	}
}
