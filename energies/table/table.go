// Package table enumerates the distribution of an energy on a space that is small enough: a reference for testing samplers.
package table

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/gradhop/gradhop/energies"
)

// Enumeration is the distribution of an energy, state by state.
type Enumeration struct {
	// X holds every allowed state that meets the constraints of the space, [state, site], in increasing order of index.
	X energies.Batch
	// U is the log-density and P the probability of each state, [state]; LogZ is log Σ exp(U).
	U, P []float64
	LogZ float64

	index []int // of each state, increasing
	cdf   []float64
}

// maxStates is the maximal size of an enumeration.
const maxStates = 1 << 20

// Enumerate evaluates e at every allowed state. Errors are *energies.SpaceError for more than maxStates
// states, and those of the energy.
func Enumerate(ctx context.Context, e energies.Energy) (*Enumeration, error) {
	sp := e.Space()
	n := 1
	for i := range sp.Sites {
		values := sp.Values
		if list := sp.AllowedAt(i); list != nil {
			values = len(list)
		}
		if n *= values; n > maxStates {
			return nil, &energies.SpaceError{Site: -1, Reason: fmt.Sprintf("at least %d states; an enumeration can have at most %d", n, maxStates)}
		}
	}
	w := &Enumeration{X: energies.NewBatch(sp, n)}
	states := w.X.Codes[:0]
	for k := range n {
		rest := k
		for i := sp.Sites - 1; i >= 0; i-- {
			values, list := sp.Values, sp.AllowedAt(i)
			if list != nil {
				values = len(list)
			}
			w.X.Chain(k)[i] = int32(rest % values)
			if list != nil {
				w.X.Chain(k)[i] = list[rest%values]
			}
			rest /= values
		}
		if x := w.X.Chain(k); sp.Meets(x) {
			w.index = append(w.index, index(sp, x))
			states = append(states, x...)
		}
	}
	n = len(w.index)
	w.X.Codes, w.U, w.P, w.cdf = states, make([]float64, n), make([]float64, n), make([]float64, n)
	if err := e.LogDensity(ctx, w.U, w.X); err != nil {
		return nil, err
	}
	w.normalise()
	return w, nil
}

func (w *Enumeration) normalise() {
	top := math.Inf(-1)
	for _, u := range w.U {
		top = max(top, u)
	}
	sum := 0.0
	for _, u := range w.U {
		sum += math.Exp(u - top)
	}
	w.LogZ = top + math.Log(sum)
	total := 0.0
	for k, u := range w.U {
		w.P[k] = math.Exp(u - w.LogZ)
		total += w.P[k]
		w.cdf[k] = total
	}
}

// Len returns the number of states.
func (w *Enumeration) Len() int { return len(w.U) }

// Find returns the position of state x in the enumeration, or -1 if x is not allowed.
func (w *Enumeration) Find(x []int32) int {
	k := index(w.X.Space, x)
	if j := sort.SearchInts(w.index, k); j < len(w.index) && w.index[j] == k {
		return j
	}
	return -1
}

// Draw returns the position of the state at which the cumulative probability exceeds u in (0,1). For a
// uniform u this is an exact sample.
func (w *Enumeration) Draw(u float64) int {
	return min(sort.Search(len(w.cdf), func(k int) bool { return w.cdf[k] > u }), len(w.cdf)-1)
}

// index returns the number of a state of sp, allowed or not: its codes read as digits, the first site
// being the most significant.
func index(sp *energies.Space, x []int32) int {
	k := 0
	for _, v := range x {
		k = k*sp.Values + int(v)
	}
	return k
}
