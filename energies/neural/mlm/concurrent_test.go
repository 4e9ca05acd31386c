package mlm

import (
	"slices"
	"sync"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// TestConcurrent evaluates an energy with a cache in several goroutines: each gets what it
// gets alone. The race detector sees what they share.
func TestConcurrent(t *testing.T) {
	e := memoEnergy(t, 0)
	once := func(first int32) []float64 {
		x := energies.Batch{Space: e.Space(), Codes: []int32{first, 8, 9, first, 7, 8}}
		u := make([]float64, 3)
		if err := e.LogDensityGrad(t.Context(), u, make([]float32, 3*2*e.Space().Values), x); err != nil {
			t.Error(err)
		}
		return u
	}
	want := [][]float64{once(7), once(10)}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			if u := once([]int32{7, 10}[k%2]); !slices.Equal(u, want[k%2]) {
				t.Errorf("U is %v, alone %v", u, want[k%2])
			}
			e.Forget()
			if u := once(7); !slices.Equal(u, want[0]) {
				t.Errorf("U is %v, alone %v", u, want[0])
			}
		})
	}
	wg.Wait()
}
