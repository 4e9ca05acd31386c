package clip

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
)

// promptSpec is the part of the task files of scripts/bench that a prompt needs.
type promptSpec struct {
	Model   string
	IDs     []int32
	Blanks  []int
	Allowed []int32
	Init    map[string][][]int32 // by number of chains
	Target  []float32
	Weight  float64
	Threads int
}

// BenchmarkPromptTilt evaluates U and tilt of a prompt, and reports the share of time
// spent outside the runtime: copying embeddings, adding up the products with the target.
// GRADHOP_BENCH_SPEC names a task file and GRADHOP_BENCH_CHAINS how many of its chains.
func BenchmarkPromptTilt(b *testing.B) {
	path := os.Getenv("GRADHOP_BENCH_SPEC")
	if path == "" {
		b.Skip("GRADHOP_BENCH_SPEC names no task file")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var s promptSpec
	if err := json.Unmarshal(data, &s); err != nil {
		b.Fatal(err)
	}
	c, err := Open(Files{FS: os.DirFS(s.Model), Dir: s.Model, Text: "text_model.onnx"}, Options{Runtime: ort.Options{Threads: s.Threads}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	e, err := c.Prompt(Text{IDs: s.IDs, Blanks: s.Blanks, Tokens: s.Allowed}, Targets{Vectors: [][]float32{s.Target}, Weights: []float64{s.Weight}})
	if err != nil {
		b.Fatal(err)
	}
	x := energies.Batch{Space: e.Space(), Codes: slices.Concat(s.Init[os.Getenv("GRADHOP_BENCH_CHAINS")]...)}
	ctx := context.Background()
	u, p := make([]float64, x.Chains()), make([]float32, len(x.Codes)*x.Space.Values)
	if err := e.LogDensityTilt(ctx, u, p, x); err != nil { // which opens the sessions
		b.Fatal(err)
	}
	tower, err := e.c.session(ctx, graphKey{name: "slopes"}, e.c.text.slopes)
	if err != nil {
		b.Fatal(err)
	}
	head, err := e.head(ctx, "tilt", e.tiltGraph)
	if err != nil {
		b.Fatal(err)
	}
	n, k, t := x.Chains(), x.Space.Sites, c.text
	var total, inside time.Duration
	for b.Loop() {
		// The steps of LogDensityTilt for a batch in one part, with a clock between them.
		start := time.Now()
		goal := func(int) []float64 { return e.goal }
		d := make([]float32, len(x.Codes)*t.embed)
		in := e.inputs(x, 0, n, n, goal)
		unit := make([]float32, n*t.width)
		out := []*ort.Tensor{{Shape: []int64{int64(n), int64(t.width)}, Data: unit}, {Shape: []int64{int64(n), int64(k), int64(t.embed)}, Data: d}}
		called := time.Now()
		if err := tower.Run(ctx, in, out); err != nil {
			b.Fatal(err)
		}
		inside += time.Since(called)
		e.score(u, unit, goal)
		rows := map[string]*ort.Tensor{inHead: {Shape: []int64{int64(n * k), int64(t.embed)}, Data: d}}
		called = time.Now()
		if err := head.Run(ctx, rows, []*ort.Tensor{{Shape: []int64{int64(n), int64(k), int64(x.Space.Values)}, Data: p}}); err != nil {
			b.Fatal(err)
		}
		inside += time.Since(called)
		total += time.Since(start)
	}
	b.ReportMetric(100*(1-inside.Seconds()/total.Seconds()), "outside-%")
}
