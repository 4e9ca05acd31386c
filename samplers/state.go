package samplers

import (
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// What random numbers are for: the last word of a stream's key. A use keeps its
// number for ever, since draws depend on it.
const (
	useInit     uint32 = 1 // initial codes
	useProposal uint32 = 2 // proposed values
	useAccept   uint32 = 3 // Metropolis decision
	useSite     uint32 = 4 // choice of a site
	useBatch    uint32 = 5 // terms of a minibatch
)

// State is where a batch of chains stands. What a restart needs is in X,
// StepSize, Adapt, Since, Aux, Step, Seed and ChainIDs (see [Snapshot]); Local and
// Weight are derived from these and recomputed by Kernel.Init.
//
// A step may exchange the memory behind X and Local for other memory: copy what
// must outlive it.
type State struct {
	// X holds the current codes, [chain, site].
	X energies.Batch
	// Local is what the kernel keeps of the energy at X.
	Local
	// StepSize is α of each chain, [chain]; nil for kernels without one.
	StepSize []float64
	// Adapt is the progress of each chain's adaptation, [chain]; nil for kernels
	// that do not adapt.
	Adapt []Adaptation
	// Since is the number of the step from which on the kernel has gathered what it
	// keeps of each chain besides its codes, [chain]; nil for kernels that keep
	// nothing. Whoever changes codes from outside sets it to nil.
	Since []int64
	// Aux holds numbers that the kernel keeps of each chain, [chain, number]; nil for
	// kernels that keep none. Its layout is the kernel's own.
	Aux []float32
	// Weight is the weight of each chain's state in estimates of expectations, [chain],
	// positive and finite; nil where all have the same (see [WeightedMean]).
	Weight []float64
	// Annealed says that the run has a schedule of inverse temperatures, and Beta is β
	// of the step being made, or of the last one made; set before Kernel.Init and before
	// each step. Without a schedule β is 1, whatever Beta says. U is that of β = 1
	// throughout: the log-density of the step's target π^β is β·U.
	Annealed bool
	Beta     float64
	// Step is the number of steps made so far, warm-up included, and the number
	// of the next one in the names of its random streams.
	Step int64
	// Seed is the first word of every random stream.
	Seed uint64
	// ChainIDs are the chains' numbers in the whole run, [chain]. A subset of
	// chains with their numbers draws what it would in the whole.
	ChainIDs []int64
	// Warmup says that draws are not to be kept yet.
	Warmup bool
	// RejectNonFinite treats states whose U or gradient is NaN or +Inf as states
	// of probability zero, instead of failing with a *NonFiniteError.
	RejectNonFinite bool
	// Evaluations counts the states evaluated since and including Init.
	Evaluations Counts
}

// Chains returns the number of chains.
func (s *State) Chains() int { return s.X.Chains() }

// Counts is a number of evaluations, each of one state.
type Counts struct {
	// Density counts U alone.
	Density int64 `json:"density"`
	// Gradient counts U together with its gradient or tilt.
	Gradient int64 `json:"gradient"`
	// Conditional counts full conditionals of one site, exact or the model's own.
	Conditional int64 `json:"conditional"`
}

// Total returns the sum of all counts.
func (c Counts) Total() int64 { return c.Density + c.Gradient + c.Conditional }

func (c *Counts) add(d Counts) {
	c.Density += d.Density
	c.Gradient += d.Gradient
	c.Conditional += d.Conditional
}

// Info is what a reader may want to know of one step. Slices are reused by the
// next step.
type Info struct {
	// Accept is the probability with which the proposal was to be accepted,
	// [chain]; 1 for kernels that always accept.
	Accept []float64
	// Accepted says whether it was, [chain].
	Accepted []bool
	// Hops is the number of sites that changed, [chain].
	Hops []int
	// Evaluations counts the states evaluated in this step, over all chains.
	Evaluations Counts
	// Keep says that this step's states are draws: past the warm-up and not
	// thinned out. The run loop sets it.
	Keep bool
}

// Reset makes room for n chains and clears every field. Kernels call it first.
func (i *Info) Reset(n int) {
	i.Accept = resize(i.Accept, n)
	i.Accepted = resize(i.Accepted, n)
	i.Hops = resize(i.Hops, n)
	clear(i.Accept)
	clear(i.Accepted)
	clear(i.Hops)
	i.Evaluations = Counts{}
	i.Keep = false
}

// Snapshot is what a restart needs of a State. Its numbers are exact in JSON
// (Go writes a float64 so that it reads back as itself).
type Snapshot struct {
	Seed     uint64       `json:"seed"`
	Step     int64        `json:"step"`
	ChainIDs []int64      `json:"chain_ids"`
	Codes    []int32      `json:"codes"` // [chain, site]
	StepSize []float64    `json:"step_size,omitempty"`
	Adapt    []Adaptation `json:"adapt,omitempty"`
	Since    []int64      `json:"since,omitempty"` // see State
	Aux      []float32    `json:"aux,omitempty"`
	// Evaluations goes on counting; the restart's own Init is not added.
	Evaluations Counts `json:"evaluations"`
}

// Snapshot returns a copy of what a restart needs, sharing no memory with s.
func (s *State) Snapshot() Snapshot {
	return Snapshot{
		Seed: s.Seed, Step: s.Step, ChainIDs: slices.Clone(s.ChainIDs), Codes: slices.Clone(s.X.Codes),
		StepSize: slices.Clone(s.StepSize), Adapt: slices.Clone(s.Adapt), Since: slices.Clone(s.Since), Aux: slices.Clone(s.Aux),
		Evaluations: s.Evaluations,
	}
}

// resize returns s with length n, reallocated only where it must grow. The
// contents are unspecified.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
