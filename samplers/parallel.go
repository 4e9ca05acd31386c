package samplers

import (
	"runtime"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Worker is what one goroutine needs to draw for chains, one after the other.
type Worker struct {
	// Stream draws; whoever uses it positions it first.
	rng.Stream
	row   []float64
	bytes []uint8
	words []uint64
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

// Words returns scratch of length n, with unspecified contents.
func (w *Worker) Words(n int) []uint64 {
	w.words = resize(w.words, n)
	return w.words
}

// Workers calls functions for every chain of a state, in parallel where that pays. The
// zero value is ready for use.
type Workers struct {
	list []Worker
	f    func(w *Worker, c int)
	run  func(worker, lo, hi int)
}

// Each calls f for every chain of s. What f computes must not depend on the worker. It allocates
// nothing after the first call, if f is kept from call to call.
func (ws *Workers) Each(s *State, f func(w *Worker, c int)) {
	if p := runtime.GOMAXPROCS(0); len(ws.list) < p {
		ws.list = make([]Worker, p)
	}
	if ws.run == nil {
		ws.run = ws.chains
	}
	ws.f = f
	energies.Parallel(s.Chains(), len(s.X.Codes)*min(s.X.Space.Values, blockLen), ws.run)
}

func (ws *Workers) chains(worker, lo, hi int) {
	for c := lo; c < hi; c++ {
		ws.f(&ws.list[worker], c)
	}
}
