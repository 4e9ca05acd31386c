package ebm_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/tasks/ebm"
	"github.com/gradhop/gradhop/tasks/ebm/dataset"
	"github.com/gradhop/gradhop/tasks/ebm/network"
)

// resident returns the memory of the process in bytes, the runtime's included.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// Updates do not copy the weights on their way to the runtime, and leave no memory behind.
func TestMemory(t *testing.T) {
	space := energies.Space{Sites: 16, Values: 2, Kind: energies.Binary}
	d, err := dataset.New("zeros", &space, make([]float64, 16*20), 1, dataset.Exact, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := network.New("mlp", network.Options{Space: space, Width: 512, Depth: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := ebm.New(t.Context(), m, d, ebm.Settings{Batch: 4, Buffer: 8, Steps: 10, Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	updates := func(n int) (allocated int64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	weights := int64(4 * tr.Weights().Count())
	updates(20)
	start := resident(t)
	const n = 60
	allocated := updates(n) / n
	grown := (resident(t) - start) / n
	t.Logf("weights %d bytes; an update allocates %d and adds %d to the process", weights, allocated, grown)
	if allocated > weights/4 { // ten steps with a copy each would be ten times the weights
		t.Errorf("an update of 10 sampler steps allocates %d bytes, with weights of %d", allocated, weights)
	}
	if grown > weights/20 {
		t.Errorf("memory grows by %d bytes an update, with weights of %d", grown, weights)
	}
}
