// Package samplers draws from energies over discrete states.
//
// A [Kernel] makes one step of a Markov chain for every chain of a batch; a
// [Loop] (or [Run]) repeats it, adapts step sizes in warm-up and calls
// observers. Kernels are found by name in a registry ([Names], [Lookup], [New])
// or built directly, as by [NewDMALA].
//
// # Notation
//
// A state x has sites i = 0..d-1; site i takes a value v. π(x) ∝ exp(U(x)).
// g[i,v] = ∂U/∂onehot[i,v], d[i,v] = g[i,v] - g[i,x_i] estimates to first order
// what U gains when site i takes value v, and D²(v,w) is the squared distance
// of two values ([energies.Space.SquaredDistance]).
//
// # Draws have names
//
// Every random number belongs to a stream keyed by (seed, chain, step, use), so
// a run gives the same draws however its chains are batched, split over
// processes, stopped and resumed, as long as the energy gives a state the same
// U and gradient whatever batch it is in.
//
// # Exactness in float32
//
// Gradients and tilted probabilities arrive in float32. What a proposal draws
// from is the law these rounded numbers define, normalised in float64, and its
// forward and backward log-probabilities are those of that very law. It is a
// deterministic function of the state, so the Metropolis step leaves exp(U)
// invariant whatever was rounded or underflowed: a move whose reverse has
// underflowed to probability zero is rejected, and is never proposed the other
// way round.
//
// # What is not exact
//
// DULA, SGDLD and pseudo-Gibbs follow another law than π, and PEZ none: it optimises.
// Registration.Exact says which is which. States of SGDLD have weights besides
// ([State.Weight], [Recorder.Mean]): without them its draws are of the jumps, not of the
// time spent between them.
//
// # Temperature
//
// A fixed temperature belongs to the energy: a kernel sees only U. A run may have a
// schedule of inverse temperatures β on top ([Config.InverseTemperature]); step t then
// has the target π^β_t, and both ways of a proposal are taken at that β from the raw
// U and gradient kept, without evaluating the energy again. U of states and draws
// remains that of β = 1. Wide value sets are fast where the energy is an
// energies.Tempered; with others the gradient is scaled and exponentiated here.
package samplers
