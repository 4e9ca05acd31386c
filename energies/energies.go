// Package energies defines the interface between samplers and models: a discrete [Space], a [Batch] of
// chains of integer codes in it, and an [Energy], the unnormalised log-density of
//
//	π(x) ∝ exp(U(x)).
//
// U is in nats. A larger U is more probable; U = -Inf means probability zero. A model that computes an
// energy E of the opposite sign is used as U = -E.
//
// Gradients are taken at the one-hot encoding of a state: g[i,v] = ∂U/∂onehot[i,v], so that
// g[i,v]-g[i,x_i] is the first-order estimate of the change of U when site i takes value v (Grathwohl
// et al. 2021, eq. 3).
//
// A user-defined energy implements the two methods of [Energy], and those of the small interfaces that it can:
// [Differentiable] for samplers by gradients, [Conditional] for Gibbs sampling, and so on. A sampler asks for the
// interface that it needs by [As], once. [Sum] adds energies, [Memo] caches one and [WithDraft] adds a draft.
//
// Sub-packages hold energies of known form; energies/neural holds energies that run an ONNX model.
package energies

import "context"

// Energy is an unnormalised log-density over the states of a Space.
type Energy interface {
	// Space returns the states on which the energy is defined. It never changes.
	Space() *Space
	// LogDensity sets u, [chain], to U of each chain of x in nats. It does not retain u or x. It is
	// safe for concurrent use. On error u is undefined.
	LogDensity(ctx context.Context, u []float64, x Batch) error
}

// Batch is a set of states in one Space, one per chain.
type Batch struct {
	Space *Space
	Codes []int32 // [chain, site]
	// IDs are the numbers of the chains in the whole run, [chain], or nil. They affect results in the
	// last bits at most: an energy whose rounding depends on the row of a state in its batch uses them
	// to choose the row, so that results do not depend on batch composition.
	IDs []int64
}

// NewBatch returns a batch of n chains with every code zero.
func NewBatch(s *Space, n int) Batch {
	return Batch{Space: s, Codes: make([]int32, n*s.Sites)}
}

// Chains returns the number of chains.
func (b Batch) Chains() int {
	if b.Space == nil || b.Space.Sites == 0 {
		return 0
	}
	return len(b.Codes) / b.Space.Sites
}

// Chain returns the codes of chain c, sharing memory with b.
func (b Batch) Chain(c int) []int32 {
	d := b.Space.Sites
	return b.Codes[c*d : (c+1)*d : (c+1)*d]
}

// Slice returns the chains [lo, hi), sharing memory with b.
func (b Batch) Slice(lo, hi int) Batch {
	d := b.Space.Sites
	s := Batch{Space: b.Space, Codes: b.Codes[lo*d : hi*d : hi*d]}
	if b.IDs != nil {
		s.IDs = b.IDs[lo:hi:hi]
	}
	return s
}

// Clone returns a copy whose codes are not shared with b.
func (b Batch) Clone() Batch {
	return Batch{Space: b.Space, Codes: append([]int32(nil), b.Codes...), IDs: append([]int64(nil), b.IDs...)}
}
