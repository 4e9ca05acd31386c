package samplers

import (
	"runtime"
	"sync"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Worker is what one goroutine needs to draw for chains, one after the other.
type Worker struct {
	// Stream draws; whoever uses it positions it first.
	rng.Stream
	row   []float64
	bytes []uint8
}

// Row returns scratch of length n, with unspecified contents.
func (w *Worker) Row(n int) []float64 {
	w.row = resize(w.row, n)
	return w.row
}

// Bytes returns scratch of length n, with unspecified contents.
func (w *Worker) Bytes(n int) []uint8 {
	w.bytes = resize(w.bytes, n)
	return w.bytes
}

// Workers calls functions for every chain of a state, in parallel where that pays. The
// zero value is ready for use.
type Workers struct {
	list  []Worker
	each  func(w *Worker, c int)
	part  func(w *Worker, lo, hi int)
	parts func(w *Worker, lo, hi int) // ws.chains
	run   func(worker, lo, hi int)    // ws.ranges
}

// Each calls f for every chain of s. What f computes must not depend on the worker. It allocates
// nothing after the first call, if f is kept from call to call.
func (ws *Workers) Each(s *State, f func(w *Worker, c int)) {
	if ws.parts == nil {
		ws.parts = ws.chains
	}
	ws.each = f
	ws.Parts(s, ws.parts)
}

// Parts is Each for ranges of chains, [lo, hi).
func (ws *Workers) Parts(s *State, f func(w *Worker, lo, hi int)) {
	if p := runtime.GOMAXPROCS(0); len(ws.list) < p {
		ws.list = make([]Worker, p)
	}
	if ws.run == nil {
		ws.run = ws.ranges
	}
	ws.part = f
	energies.Parallel(s.Chains(), len(s.X.Codes)*min(s.X.Space.Values, blockLen), ws.run)
}

func (ws *Workers) ranges(worker, lo, hi int) { ws.part(&ws.list[worker], lo, hi) }

func (ws *Workers) chains(w *Worker, lo, hi int) {
	for c := lo; c < hi; c++ {
		ws.each(w, c)
	}
}

// firstError keeps, of errors that workers met, that of the first chains. The zero value has none.
type firstError struct {
	mu  sync.Mutex
	at  int
	err error
}

// add adds the error of the chains from lo on.
func (f *firstError) add(lo int, err error) {
	f.mu.Lock()
	if f.err == nil || lo < f.at {
		f.at, f.err = lo, err
	}
	f.mu.Unlock()
}

// take returns the error and forgets it.
func (f *firstError) take() error {
	err := f.err
	f.err = nil
	return err
}
