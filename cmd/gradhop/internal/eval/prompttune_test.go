package eval

import (
	"context"
	"encoding/csv"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
)

func parsePromptTune(t *testing.T, args ...string) *PromptTuneOptions {
	t.Helper()
	var got *PromptTuneOptions
	cmd := NewPromptTune(&app.App{Out: io.Discard, Err: io.Discard}, func(_ context.Context, o *PromptTuneOptions) error {
		got = o
		return nil
	})
	if err := execute(cmd, args); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSeekers checks which options reach which sampler: those for all go to who has them,
// a sampler's own come first, and minibatches are sgdld's alone.
func TestSeekers(t *testing.T) {
	o := parsePromptTune(t, "--images", "p")
	if strings.Join(o.Samplers, " ") != "sgdld sgdld:no-cache pez dmala" || !reflect.DeepEqual(o.Lengths, []int{4, 8, 16, 32}) || o.Repeats != 10 || o.SeedSet {
		t.Errorf("defaults: %+v", o)
	}
	o = parsePromptTune(t, "--images", "p", "--samplers", "sgdld:jump=single:no-cache,sgdld:batch=3,dmala,gwg", "--image-batch", "2",
		"--step-size", "0.5", "--jump", "sites", "--repeats", "6")
	list, err := o.seekers()
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		options    map[string]string
		imageBatch int
	}
	want := []row{
		{map[string]string{"jump": "single", "no-cache": "true"}, 2}, {map[string]string{"jump": "sites", "batch": "3"}, 0},
		{map[string]string{"step-size": "0.5"}, 0}, {map[string]string{}, 0},
	}
	if len(list) != len(want) {
		t.Fatalf("%d samplers, want %d", len(list), len(want))
	}
	for i, s := range list {
		if got := (row{s.search.Options, s.search.ImageBatch}); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s: %+v, want %+v", s.name, got, want[i])
		}
		if s.search.Chains != 6 || s.search.Top != 1 {
			t.Errorf("%s: %d chains, top %d", s.name, s.search.Chains, s.search.Top)
		}
	}
	for _, args := range [][]string{
		{"--samplers", "dmala,dmala"}, {"--samplers", "dmala:no-cache"}, {"--samplers", "sgdld:jump=both"}, {"--samplers", "gwg", "--step-size", "1"},
		{"--samplers", ""}, {"--samplers", "sgdld:"}, {"--samplers", "dmala", "--beta", "cold"},
	} {
		if _, err := parsePromptTune(t, args...).seekers(); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestSearchesPrint reads the numbers of a table back.
func TestSearchesPrint(t *testing.T) {
	nan := run.Number(math.NaN())
	r := &Searches{Lengths: []int{4, 8}, Repeats: 2, Searches: []Searched{
		{Sampler: "pez", Length: 4, Best: []run.Number{0.25, 0.75}, Texts: []string{"a, b", "c"}, Mean: 0.5, SD: 0.3536},
		{Sampler: "dmala", Length: 4, Best: []run.Number{nan, 0.5}, Texts: []string{"", "d"}, Mean: nan, SD: nan},
		{Sampler: "pez", Length: 8, Best: []run.Number{0.125}, Texts: []string{"e"}, Mean: 0.125, SD: nan},
	}}
	text := r.text()
	for _, line := range []string{"best cosine         4 blanks  8 blanks", "pez          0.5000 ± 0.3536    0.1250", "dmala                     NA         -",
		"  0.7500  pez             4  c", "  0.5000  dmala           4  d"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	var b strings.Builder
	if err := r.csv(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v; want the head and a row for each repeat", len(rows), err)
	}
	if got := rows[1][5]; got != "a, b" {
		t.Errorf("text %q", got)
	}
}
