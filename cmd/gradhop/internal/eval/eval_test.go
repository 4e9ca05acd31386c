package eval

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/tasks/eval"
	"github.com/gradhop/gradhop/tasks/infill"
)

// TestProtocol holds the defaults to the published protocol.
func TestProtocol(t *testing.T) {
	o := &infillOptions{output: output{app: &app.App{}}}
	if err := o.command().ParseFlags([]string{"--task", "t", "--refs", "a,b", "--refs", "c"}); err != nil {
		t.Fatal(err)
	}
	if err := o.prepare(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range o.Entrants {
		names = append(names, e.Name)
		if d := e.Draw; d.Chains != 25 || d.Steps != 50 || d.Warmup != 50 || d.Init != infill.StartMask {
			t.Errorf("%s: %+v", e.Name, d)
		}
	}
	if got := strings.Join(names, ","); got != "gibbs-model,gwg,dula,dmala" {
		t.Errorf("samplers %s", got)
	}
	if o.Top != 5 || o.Keep != eval.KeepLast || o.Mix != 0 || o.Originals || !slices.Equal(o.References, []string{"a,b", "c"}) {
		t.Errorf("options %+v", o.InfillOptions)
	}
}

// TestEntrants checks which options reach which sampler: those for all go to the samplers
// that have them, and a sampler's own come first.
func TestEntrants(t *testing.T) {
	list, err := entrants([]string{"sgdld:jump=single:no-cache", "sgdld:batch=3", "dmala", "gwg"}, samplers.Settings{"step-size": "0.5", "jump": "sites"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []samplers.Settings{{"jump": "single", "no-cache": "true"}, {"jump": "sites", "batch": "3"}, {"step-size": "0.5"}, {}} {
		if got := list[i].set; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", list[i].name, got, want)
		}
	}
}

// TestPromptEntrants: minibatches are for samplers that have them.
func TestPromptEntrants(t *testing.T) {
	parse := func(args ...string) (*promptOptions, error) {
		o := &promptOptions{output: output{app: &app.App{}}}
		if err := o.command().ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		return o, o.prepare()
	}
	o, err := parse("--images", "p", "--samplers", "sgdld:no-cache,sgdld:batch=3,dmala", "--image-batch", "2", "--repeats", "6")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, 0, 0} {
		if s := o.Entrants[i].Search; s.ImageBatch != want || s.Chains != 6 || s.Top != 1 || s.Steps != 1000 || s.Beta != "0.3t" {
			t.Errorf("%s: %+v", o.Entrants[i].Name, s)
		}
	}
	for _, args := range [][]string{
		{"--samplers", "dmala,dmala"}, {"--samplers", "dmala:no-cache"}, {"--samplers", "sgdld:jump=both"}, {"--samplers", "gwg", "--step-size", "1"},
		{"--samplers", ""}, {"--samplers", "sgdld:"}, {"--samplers", "dmala", "--beta", "cold"}, {"--lengths", "0"}, {"--lengths", "2,2"},
	} {
		if _, err := parse(args...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestPromptText reads a table.
func TestPromptText(t *testing.T) {
	nan := diag.NA
	r := &eval.PromptResult{Lengths: []int{4, 8}, Repeats: 2, Searches: []eval.PromptSearch{
		{Sampler: "pez", Length: 4, Best: []diag.Number{0.25, 0.75}, Texts: []string{"a, b", "c"}, Mean: 0.5, SD: 0.3536},
		{Sampler: "dmala", Length: 4, Best: []diag.Number{nan, 0.5}, Texts: []string{"", "d"}, Mean: nan, SD: nan},
		{Sampler: "pez", Length: 8, Best: []diag.Number{0.125}, Texts: []string{"e"}, Mean: 0.125, SD: nan},
	}}
	text := promptText(r)
	for _, line := range []string{"best cosine         4 blanks  8 blanks", "pez          0.5000 ± 0.3536    0.1250", "dmala                     NA         -",
		"  0.7500  pez             4  c", "  0.5000  dmala           4  d"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if rows := r.Rows(); len(rows) != 6 || rows[1][5] != "a, b" {
		t.Errorf("%d rows; want the head and a row for each repeat; the first has text %q", len(rows), rows[1][5])
	}
}
