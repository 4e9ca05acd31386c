package samplers

import (
	"runtime"
	"sync"

	"github.com/gradhop/gradhop/samplers/rng"
)

// serialWork is the number of value-sized operations below which a second
// goroutine costs more than it saves.
const serialWork = 1 << 16

// parallel calls f on ranges that cover [0, n), on as many goroutines as there
// are processors when work, the size of the whole, is worth it. What f computes
// for an element must not depend on the range it is in.
func parallel(n, work int, f func(worker, lo, hi int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if work < serialWork || workers < 2 {
		f(0, 0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := w*n/workers, (w+1)*n/workers
		wg.Go(func() { f(w, lo, hi) })
	}
	wg.Wait()
}

// Worker is what one goroutine needs to draw for chains, one after the other.
type Worker struct {
	// Stream draws; whoever uses it positions it first.
	rng.Stream
	row []float64
}

// Row returns scratch of length n, with unspecified contents.
func (w *Worker) Row(n int) []float64 {
	w.row = resize(w.row, n)
	return w.row
}

// Workers calls functions for every chain of a state, in parallel where that pays. The
// zero value is ready for use.
type Workers struct{ list []Worker }

// Each calls f for every chain of s. What f computes must not depend on the worker.
func (ws *Workers) Each(s *State, f func(w *Worker, c int)) {
	if p := runtime.GOMAXPROCS(0); len(ws.list) < p {
		ws.list = make([]Worker, p)
	}
	n, work := s.Chains(), len(s.X.Codes)*min(s.X.Space.Values, blockLen)
	if work < serialWork { // without a closure: no allocation
		for c := range n {
			f(&ws.list[0], c)
		}
		return
	}
	parallel(n, work, func(worker, lo, hi int) {
		for c := lo; c < hi; c++ {
			f(&ws.list[worker], c)
		}
	})
}
