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
	words []uint64
	bits  uint64
}

// Row returns scratch of length n, with unspecified contents.
func (w *Worker) Row(n int) []float64 {
	w.row = resize(w.row, n)
	return w.row
}

// Below is true with probability p, for i = 0, 1, 2, ... in turn. 16 random bits decide nearly always.
func (w *Worker) Below(i int, p float64) bool {
	if i%4 == 0 {
		w.bits = w.Uint64()
	}
	r, scaled := int32(w.bits&0xffff), p*(1<<16)
	w.bits >>= 16
	high := int32(scaled)
	if r == high {
		return w.Float64() < scaled-float64(high)
	}
	return r < high
}

// Words returns scratch of length n, with unspecified contents.
func (w *Worker) Words(n int) []uint64 {
	w.words = resize(w.words, n)
	return w.words
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

// mostWork bounds what a site counts for, in values: most of them cost nothing where it does not change.
const mostWork = 256

// Parts is Each for ranges of chains, [lo, hi).
func (ws *Workers) Parts(s *State, f func(w *Worker, lo, hi int)) {
	if p := runtime.GOMAXPROCS(0); len(ws.list) < p {
		ws.list = make([]Worker, p)
	}
	if ws.run == nil {
		ws.run = ws.ranges
	}
	ws.part = f
	energies.Parallel(s.Chains(), len(s.X.Codes)*min(s.X.Space.Values, mostWork), ws.run)
}

func (ws *Workers) ranges(worker, lo, hi int) { ws.part(&ws.list[worker], lo, hi) }

func (ws *Workers) chains(w *Worker, lo, hi int) {
	for c := lo; c < hi; c++ {
		ws.each(w, c)
	}
}
