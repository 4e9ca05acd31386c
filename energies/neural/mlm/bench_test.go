package mlm

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// benchSpec is the part of the task files of scripts/bench that an energy needs.
type benchSpec struct {
	Model   string
	IDs     []int32
	Blanks  []int
	Allowed []int32
	Init    map[string][][]int32 // by number of chains
	MaskID  int32                `json:"mask_id"`
	Threads int
}

// BenchmarkTilt evaluates U and tilt, and reports the share of time spent outside
// the runtime: laying out inputs, adding up terms. GRADHOP_BENCH_SPEC names a task
// file and GRADHOP_BENCH_CHAINS how many of its chains; without it the model is the
// tests' tiny one.
func BenchmarkTilt(b *testing.B) {
	s := benchSpec{
		Model: filepath.Join("testdata", "bert", "legacy-14-sdpa"), IDs: make([]int32, 24), Blanks: []int{3, 9, 14, 20},
		Allowed: []int32{7, 8, 9, 10}, Init: map[string][][]int32{"": {{7, 8, 9, 10}}}, MaskID: 6,
	}
	if path := os.Getenv("GRADHOP_BENCH_SPEC"); path != "" {
		s = benchSpec{}
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(data, &s); err != nil {
			b.Fatal(err)
		}
	}
	e := s.energy(b)
	x := energies.Batch{Space: e.Space(), Codes: slices.Concat(s.Init[os.Getenv("GRADHOP_BENCH_CHAINS")]...)}
	session, err := e.m.session(context.Background(), withTilt, false)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	u, p := make([]float64, x.Chains()), make([]float32, len(x.Codes)*x.Space.Values)
	if err := e.LogDensityTilt(ctx, u, p, x); err != nil {
		b.Fatal(err)
	}
	shape := []int64{int64(x.Chains()), int64(x.Space.Sites), int64(x.Space.Values)}
	var total, inside time.Duration
	for b.Loop() {
		// The steps of Infill.run, with a clock between them.
		start := time.Now()
		in := e.inputs(x)
		site := make([]float32, len(x.Codes))
		out := []*ort.Tensor{{Shape: shape[:2], Data: site}, {Shape: shape, Data: p}}
		called := time.Now()
		if err := session.Run(ctx, in, out); err != nil {
			b.Fatal(err)
		}
		inside += time.Since(called)
		for k, v := range site {
			u[k/x.Space.Sites] += float64(v)
		}
		total += time.Since(start)
	}
	b.ReportMetric(100*(1-inside.Seconds()/total.Seconds()), "outside-%")
}

func (s *benchSpec) energy(b *testing.B) *Infill {
	b.Helper()
	m, err := onnx.Load(filepath.Join(s.Model, "model.onnx"))
	if err != nil {
		b.Fatal(err)
	}
	mlm, err := New(m, Options{MaskID: s.MaskID, Runtime: ort.Options{Threads: s.Threads}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { mlm.Close() })
	e, err := mlm.Infill(Text{IDs: s.IDs, Blanks: s.Blanks, Allowed: [][]int32{s.Allowed}})
	if err != nil {
		b.Fatal(err)
	}
	return e
}
