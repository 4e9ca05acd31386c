// Package energies holds the vocabulary that samplers and models share: a
// discrete [Space], a [Batch] of chains of integer codes in it, and an
// [Energy], the unnormalised log-density
//
//	π(x) ∝ exp(U(x))
//
// U is in nats and higher is more probable; U = -Inf means probability zero. A
// model that computes an energy E in the physicist's sign is used as U = -E.
//
// Gradients are taken at the one-hot encoding of a state: g[i,v] =
// ∂U/∂onehot[i,v], so that g[i,v]-g[i,x_i] is the first-order estimate of the
// change of U when site i takes value v (Grathwohl et al. 2021, eq. 3).
//
// Sub-packages hold energies of known form; energies/neural holds those that
// run an ONNX model.
package energies

import "context"

// Energy is an unnormalised log-density over the states of a Space.
type Energy interface {
	// Space returns the states the energy is defined on. It never changes.
	Space() *Space
	// LogDensity writes U of each chain of x to u ([chain], nats). It does not
	// keep u or x. It is safe for concurrent use. On error u is undefined.
	LogDensity(ctx context.Context, u []float64, x Batch) error
}

// Differentiable is an Energy with a gradient at the one-hot encoding.
type Differentiable interface {
	Energy
	// LogDensityGrad writes U to u ([chain]) and ∂U/∂onehot to g
	// ([chain, site, value], row-major). Entries of values that the space does
	// not allow are unspecified but finite. Same rules as LogDensity.
	LogDensityGrad(ctx context.Context, u []float64, g []float32, x Batch) error
}

// Tilted is an optional faster form of Differentiable for large value sets:
// the energy itself applies the softmax that locally informed proposals need,
// where a neural runtime does it an order of magnitude faster than Go.
type Tilted interface {
	Differentiable
	// LogDensityTilt writes U to u ([chain]) and, to p ([chain, site, value]),
	// softmax_v(g[i,v]/2) over the allowed values of each site. Entries of values
	// that are not allowed are exactly zero; a row sums to one up to float32
	// rounding, and may underflow to zero where g/2 is 87 nats below its maximum.
	LogDensityTilt(ctx context.Context, u []float64, p []float32, x Batch) error
}

// Conditional is an Energy that knows the full conditionals of its sites, so
// that Gibbs sampling needs no enumeration.
type Conditional interface {
	Energy
	// LogConditional writes log π(x_site = v | the other sites) up to a constant
	// per chain to lp ([chain, value], nats); -Inf where v is not allowed.
	LogConditional(ctx context.Context, lp []float64, site int, x Batch) error
}

// ModelConditional is an Energy whose model predicts one site from the others
// by itself, as a masked language model does. Drawing from it (pseudo-Gibbs)
// is cheap, but leaves no known law invariant.
type ModelConditional interface {
	Energy
	// LogModelConditional writes the model's own conditional log-probabilities of
	// site given the other sites, up to a constant per chain, to lp ([chain,
	// value], nats); -Inf where v is not allowed. They need not be a conditional
	// of exp(U). Same rules as LogDensity.
	LogModelConditional(ctx context.Context, lp []float64, site int, x Batch) error
}

// Batch is a set of chains in one Space, stored chain after chain.
type Batch struct {
	Space *Space
	Codes []int32 // [chain, site]
	// IDs are the numbers of the chains in the whole run, [chain], or nil. They change
	// no result but in its last bits: an energy whose arithmetic depends on where in a
	// batch a row stands goes by them, so that a chain comes out the same in any batch.
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

// Clone returns a copy that shares no codes with b.
func (b Batch) Clone() Batch {
	return Batch{Space: b.Space, Codes: append([]int32(nil), b.Codes...), IDs: append([]int64(nil), b.IDs...)}
}
