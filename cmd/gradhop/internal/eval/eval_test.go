package eval

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/eval"
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
	c := o.Draw
	if c.Chains != 25 || c.Steps != 50 || c.Warmup != 50 || o.Top != 5 || o.Keep != eval.KeepLast || o.Mix != 0 || o.Originals || o.SeedSet {
		t.Errorf("options %+v", o)
	}
	o = parseInfill(t, "--samplers", "dmala,gwg", "--keep", "visited", "--keep-originals", "--mix", "7", "--seed", "0",
		"--refs", "a,b", "--refs", "c", "--samples-out", "d", "--task", "t", "--step-size", "0.5", "--warmup", "0")
	if !reflect.DeepEqual(o.Samplers, []string{"dmala", "gwg"}) || !reflect.DeepEqual(o.Refs, []string{"a,b", "c"}) || o.Keep != eval.KeepVisited ||
		!o.Originals || o.Mix != 7 || !o.SeedSet || o.SamplesOut != "d" || o.Task != "t" || o.Draw.Warmup != 0 {
		t.Errorf("options %+v", o)
	}
	list, err := o.entrants()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Draw.Options["step-size"] != "0.5" || len(list[1].Draw.Options) != 0 {
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
