package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradhop/gradhop/onnx"
)

// within is the time that a program may take to end after a signal: the second that is
// promised, and as much again as a busy machine may need to notice.
const within = 3 * time.Second

// TestSignalEndsEveryPhase sends SIGTERM while a program reads a model, rewrites a graph,
// waits for a server, searches, samples, trains and scores. None of these commands
// would end by itself before the test does.
func TestSignalEndsEveryPhase(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := writeEnergy("pair", 12, path("pair.onnx")); err != nil {
		t.Fatal(err)
	}
	if err := writeChain(300_000, path("long.onnx")); err != nil {
		t.Fatal(err)
	}
	if err := copyTiny(path("tiny")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("rows.txt"), []byte(patterns), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := process(t, "ebm", "new", "mlp", "--space", "binary:16", "--width", "12", "-o", path("mlp.onnx")).Run(); err != nil {
		t.Fatal(err)
	}
	stalled := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(stalled); server.Close() })

	const million = "1000000"
	for name, args := range map[string][]string{
		"sampling":             {"sample", path("pair.onnx"), "--space", "binary:12", "--steps", million, "--out", path("sample")},
		"warming up":           {"sample", path("pair.onnx"), "--space", "binary:12", "--warmup", million, "--out", path("warm")},
		"reading and checking": {"inspect", path("long.onnx")},
		"rewriting":            {"grad", path("long.onnx"), "--wrt", "x", "-o", path("g.onnx")},
		"checking a gradient":  {"grad", path("long.onnx"), "--wrt", "x", "--check"},
		"searching":            {"infill", "--time-limit", "0", "--beam", "200", strings.Repeat("the [MASK] ", 60)},
		"drawing":              {"infill", "--model", path("tiny"), "--draws", million, "the [MASK] sat"},
		"training":             {"ebm", "train", path("mlp.onnx"), "--space", "binary:16", "--data", path("rows.txt"), "--updates", million, "--out", path("train")},
		"annealing":            {"ebm", "score", path("mlp.onnx"), "--space", "binary:16", "--levels", million, "--chains", "100"},
		"fetching":             {"infill", "--model", "owner/model", "the [MASK] sat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := process(t, args...)
			c.Env = append(os.Environ(), "HF_ENDPOINT="+server.URL, "HF_HOME="+path("hf"))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			sent := time.Now()
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatalf("it ended before the signal: %v", c.Wait())
			}
			ended := make(chan struct{})
			go func() {
				_ = c.Wait()
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				_ = c.Process.Kill()
				t.Fatal("it ignored the signal for a minute")
			}
			if took := time.Since(sent); took > within {
				t.Errorf("it ended after %v, want at most %v", took, within)
			}
			if code := c.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
		})
	}
}

// writeChain writes a model of n nodes, each of which reads the one before.
func writeChain(n int, path string) error {
	g := &onnx.Graph{Name: "chain"}
	row := onnx.Type{Elem: onnx.Float, HasShape: true, Shape: []onnx.ShapeDim{{Param: "n"}, {Value: 4}}}
	g.Inputs = []*onnx.ValueInfo{{Name: "x", Type: row}}
	last := "x"
	for k := range n {
		out := fmt.Sprint("v", k)
		g.Nodes = append(g.Nodes, &onnx.Node{Op: "Tanh", Inputs: []string{last}, Outputs: []string{out}})
		last = out
	}
	g.Outputs = []*onnx.ValueInfo{{Name: last, Type: row}}
	return onnx.Save(&onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: g}, path, onnx.SaveOptions{})
}
