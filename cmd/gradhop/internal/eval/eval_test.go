package eval

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

func execute(cmd *cobra.Command, args []string) error {
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return cmd.Execute()
}

// parseInfill returns the options that the run would get.
func parseInfill(t *testing.T, args ...string) *InfillOptions {
	t.Helper()
	var got *InfillOptions
	cmd := NewInfill(&app.App{}, func(_ context.Context, o *InfillOptions) error {
		got = o
		return nil
	})
	if err := execute(cmd, args); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestProtocol holds the defaults to the published protocol.
func TestProtocol(t *testing.T) {
	o := parseInfill(t)
	if got := strings.Join(o.Samplers, ","); got != "gibbs-model,gwg,dula,dmala" {
		t.Errorf("samplers %s", got)
	}
	c := o.Chains
	if c.Chains != 25 || c.Steps != 50 || c.Warmup != 50 || c.Top != 5 || o.Keep != KeepLast || o.Mix != 0 || o.Originals || o.SeedSet {
		t.Errorf("options %+v", o)
	}
	o = parseInfill(t, "--samplers", "dmala,gwg", "--keep", "visited", "--keep-originals", "--mix", "7", "--seed", "0",
		"--refs", "a,b", "--refs", "c", "--samples-out", "d", "--task", "t", "--step-size", "0.5", "--warmup", "0")
	if !reflect.DeepEqual(o.Samplers, []string{"dmala", "gwg"}) || !reflect.DeepEqual(o.Refs, []string{"a,b", "c"}) || o.Keep != KeepVisited ||
		!o.Originals || o.Mix != 7 || !o.SeedSet || o.SamplesOut != "d" || o.Task != "t" || o.Chains.Warmup != 0 {
		t.Errorf("options %+v", o)
	}
	list, err := o.entrants()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].chains.Options["step-size"] != "0.5" || len(list[1].chains.Options) != 0 {
		t.Errorf("entrants %+v", list)
	}
}

func TestTextFlags(t *testing.T) {
	var got *TextOptions
	cmd := NewText(&app.App{}, func(_ context.Context, o *TextOptions) error {
		got = o
		return nil
	})
	if err := execute(cmd, []string{"s.txt", "--refs", "a", "--format", "csv"}); err != nil {
		t.Fatal(err)
	}
	if got.Samples != "s.txt" || got.Mix != 2500 || got.Format != "csv" || !reflect.DeepEqual(got.Refs, []string{"a"}) {
		t.Errorf("options %+v", got)
	}
}

// TestRemoveOriginals checks that a task's sentence is known by its words although task
// files spell some of them differently.
func TestRemoveOriginals(t *testing.T) {
	items := []Item{{Original: "After UB - 8 , was  Sold"}, {Original: " he said ,  no . "}}
	refs := []textmetrics.Refs{
		{Name: "a", Sentences: [][]string{strings.Fields("after ub @-@ 8 , was sold"), strings.Fields("after ub - 9 , was sold")}},
		{Name: "b", Sentences: [][]string{strings.Fields(`he said , " no . "`), {"x"}, strings.Fields("he said , no .")}},
	}
	left, removed, err := removeOriginals(refs, items)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(removed, []int{1, 2}) || len(left[0].Sentences) != 1 || left[0].Sentences[0][3] != "9" || left[1].Sentences[0][0] != "x" {
		t.Errorf("removed %v, left %v", removed, left)
	}
	if len(refs[0].Sentences) != 2 {
		t.Error("the argument was changed")
	}
}

func TestEarly(t *testing.T) {
	cause := context.Canceled
	if early(0, 2, cause) != cause || early(1, 2, nil) != nil {
		t.Error("an error was wrapped that must not be")
	}
	var e *InterruptedError
	if err := early(1, 2, cause); !errors.As(err, &e) || !errors.Is(err, cause) || e.Finished != 1 {
		t.Errorf("got %v", err)
	}
}

// FuzzTask checks that a task file is refused with an error, or comes out with as many
// positions as blanks, whatever is in it.
func FuzzTask(f *testing.F) {
	for _, s := range []string{
		`[{"gt_sentence": "a", "sentence": "[MASK]", "infill_pos": [1]}]`, `[]`, `{}`, `[{}]`, `[null]`, "[\n1]", "\xff", `null`, ``,
		`[{"gt_sentence": 1, "sentence": "[MASK]", "infill_pos": [1.5]}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := parseTask(data)
		if err != nil {
			if err.Error() == "" || err.Err == nil {
				t.Errorf("an error that says nothing: %#v", err)
			}
			return
		}
		if !json.Valid(data) || len(items) == 0 {
			t.Errorf("%q was accepted", data)
		}
		for _, it := range items {
			if n := strings.Count(it.Sentence, maskWord); n == 0 || n != len(it.Positions) {
				t.Errorf("%+v was accepted", it)
			}
		}
	})
}
