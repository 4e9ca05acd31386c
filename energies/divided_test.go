package energies

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestDivided: every chain is answered once, in multiples of the unit, an error is returned, and nothing is
// allocated after the first queries.
func TestDivided(t *testing.T) {
	const chains, unit = 103, 8
	wrong := errors.New("wrong")
	var fail atomic.Bool
	d := NewDivided(func(_ context.Context, q *Query, scratch []float64, lo, hi int) error {
		if lo%unit != 0 || hi%unit != 0 && hi != chains || len(scratch) != 5 {
			t.Errorf("chains %d to %d with %d numbers", lo, hi, len(scratch))
		}
		for c := lo; c < hi; c++ {
			q.U[c]++
		}
		if fail.Load() && lo <= 60 && 60 < hi {
			return wrong
		}
		return nil
	})
	q := Query{X: NewBatch(&Space{Sites: 2, Values: 2}, chains), U: make([]float64, chains)}
	answer := func() error { return d.Answer(context.Background(), q, unit, serialWork, 5) }
	for range 20 {
		if err := answer(); err != nil {
			t.Fatal(err)
		}
	}
	for c, u := range q.U {
		if u != 20 {
			t.Fatalf("chain %d was answered %v times", c, u)
		}
	}
	if n := testing.AllocsPerRun(20, func() { _ = answer() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	fail.Store(true)
	if err := answer(); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
}
