package samplers

import (
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// What random numbers are for: the last word of a stream's key. A use keeps its
// number for ever, since draws depend on it. Other packages take numbers from 1000 on.
const (
	UseInit     uint32 = 1  // initial codes
	UseProposal uint32 = 2  // proposed values
	UseAccept   uint32 = 3  // Metropolis decision
	UseSite     uint32 = 4  // choice of a site
	UseBatch    uint32 = 5  // terms of a minibatch
	UseSwap     uint32 = 6  // swaps of replicas
	UseMomentum uint32 = 7  // auxiliary variables
	UseReverse  uint32 = 8  // candidates of the reverse move
	UseStage    uint32 = 9  // second decision about a proposal
	UseJump     uint32 = 10 // jumps between known states
)

// State is where a batch of chains stands. What a restart needs is in X, Vars, Step,
// Seed and ChainIDs (see [Snapshot]); the rest is recomputed by Kernel.Init.
//
// A step may exchange the memory behind Point for other memory: copy what must
// outlive it.
type State struct {
	// Point holds the current codes X, U, and what the kernel keeps of the gradient.
	Point
	// Vars are the kernel's named numbers, in the order of Kernel.Vars.
	Vars []Var
	// Beta holds the inverse temperature β of each chain, [chain], in runs that have one;
	// set before Kernel.Init and before each step. The target of chain c is π^β_c ∝
	// exp(β_c·U). Nil means 1 throughout. U is that of β = 1 always.
	Beta []float64
	// nextBeta is Beta of the step after the one about to be made, for kernels that compute weights once for
	// both; nil where Beta is not known in advance.
	nextBeta []float64
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
	// Edits counts changes of codes that were made between steps and not by the kernel, as swaps of replicas:
	// what a kernel keeps of a state outside of Point is then out of date.
	Edits int64
	// Evaluations counts the states evaluated since and including Init.
	Evaluations Counts

	inner *State // of the inner kernel, in Tempering and TwoStage
	// sweep is the number of steps that must be reversible together, in the inner state of
	// TwoStage; 0 elsewhere.
	sweep int64
}

// Var is a named array of numbers that a kernel keeps for each chain.
type Var struct {
	VarSpec
	Data []float64 `json:"data"` // [chain, Shape...]; finite
}

// Chains returns the number of chains.
func (s *State) Chains() int { return s.X.Chains() }

// Var returns the numbers of a variable, [chain, Shape...], or nil where the state has
// none of that name. Whoever writes to them changes the state.
func (s *State) Var(name string) []float64 {
	for k := range s.Vars {
		if s.Vars[k].Name == name {
			return s.Vars[k].Data
		}
	}
	return nil
}

// Declare gives s the variables of a kernel, at their start, and reports whether it
// lacked any. Kernels call it in Init.
func (s *State) Declare(specs []VarSpec) bool {
	lacked := false
	vars := make([]Var, len(specs))
	for k, spec := range specs {
		vars[k] = Var{spec, s.Var(spec.Name)}
		if n := s.Chains() * spec.Size(); len(vars[k].Data) != n {
			vars[k].Data = slices.Repeat([]float64{spec.Start}, n)
			lacked = lacked || !spec.Derived
		}
	}
	s.Vars = vars
	return lacked
}

// InverseTemperature returns β of chain c.
func (s *State) InverseTemperature(c int) float64 {
	if s.Beta == nil {
		return 1
	}
	return s.Beta[c]
}

// NextInverseTemperature returns β of chain c in the step after the one being made, where that is known in advance; or else
// InverseTemperature.
func (s *State) NextInverseTemperature(c int) float64 {
	if s.nextBeta == nil {
		return s.InverseTemperature(c)
	}
	return s.nextBeta[c]
}

// DeltaU returns β·(u - U) of chain c for a proposal with log-density u; -Inf where it
// has probability zero, which it has at any temperature.
func (s *State) DeltaU(c int, u float64) float64 {
	if isZero(u) {
		return u
	}
	return s.InverseTemperature(c) * (u - s.U[c])
}

// Stream moves r to the random stream of chain c in the current step, for a use.
func (s *State) Stream(r *rng.Stream, c int, use uint32) {
	r.Reset(s.Seed, s.ChainIDs[c], s.Step, use)
}

// Metropolis accepts the proposal of chain c with probability min(1, exp(logRatio)) and
// fills info.Accept and info.Accepted.
func (s *State) Metropolis(r *rng.Stream, info *Info, c int, logRatio float64) {
	s.Stream(r, c, UseAccept)
	info.Accept[c] = math.Exp(min(0, logRatio))
	info.Accepted[c] = r.Float64() < info.Accept[c]
}

// Commit ends a step: chains that info.Accepted names move to their proposal in next,
// changed sites are counted, and s.Step advances. next gets memory of s in exchange.
func (s *State) Commit(next *Point, info *Info) {
	taken := 0
	for c, ok := range info.Accepted {
		if !ok {
			continue
		}
		taken++
		if info.Hops[c] == 0 { // not counted yet
			info.Hops[c] = hops(s.X.Chain(c), next.X.Chain(c))
		}
	}
	copied := true // the group that is copied: accepted proposals
	if 2*taken > len(info.Accepted) {
		s.Point, *next = *next, s.Point
		copied = false
	}
	for c, ok := range info.Accepted {
		if ok == copied {
			s.copyChain(c, next, c)
		}
	}
	s.Advance(info)
}

// Advance ends a step of a kernel that has moved the chains itself: it advances s.Step and counts evaluations.
func (s *State) Advance(info *Info) {
	s.Step++
	s.Evaluations.add(info.Evaluations)
}

// hops counts the sites at which two states differ.
func hops(x, y []int32) int {
	n := 0
	y = y[:len(x)]
	for i, v := range x {
		if v != y[i] {
			n++
		}
	}
	return n
}

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
	Seed     uint64  `json:"seed"`
	Step     int64   `json:"step"`
	ChainIDs []int64 `json:"chain_ids"`
	Codes    []int32 `json:"codes"` // [chain, site]
	// Vars are the kernel's variables that are not derived.
	Vars []Var `json:"vars,omitempty"`
	// Evaluations goes on counting; the restart's own Init is not added.
	Evaluations Counts `json:"evaluations"`
}

// Snapshot returns a copy of what a restart needs, sharing no memory with s.
func (s *State) Snapshot() Snapshot {
	c := Snapshot{Seed: s.Seed, Step: s.Step, ChainIDs: slices.Clone(s.ChainIDs), Codes: slices.Clone(s.X.Codes), Evaluations: s.Evaluations}
	for _, v := range s.Vars {
		if !v.Derived {
			c.Vars = append(c.Vars, Var{v.VarSpec, slices.Clone(v.Data)})
		}
	}
	return c
}

// Var returns the numbers of a variable, [chain, Shape...], or nil.
func (c *Snapshot) Var(name string) []float64 {
	s := State{Vars: c.Vars}
	return s.Var(name)
}

// Append adds chain c of another snapshot of the same run to s.
func (s *Snapshot) Append(from *Snapshot, c int) {
	n := len(from.ChainIDs)
	sites := len(from.Codes) / n
	s.ChainIDs = append(s.ChainIDs, from.ChainIDs[c])
	s.Codes = append(s.Codes, from.Codes[c*sites:(c+1)*sites]...)
	for k, v := range from.Vars {
		if k == len(s.Vars) {
			s.Vars = append(s.Vars, Var{VarSpec: v.VarSpec})
		}
		size := len(v.Data) / n
		s.Vars[k].Data = append(s.Vars[k].Data, v.Data[c*size:(c+1)*size]...)
	}
}

// RandomCodes returns a state for each chain whose sites are uniform over their
// allowed values: what a run without initial codes starts from.
func RandomCodes(sp *energies.Space, seed uint64, chainIDs []int64) energies.Batch {
	x := energies.NewBatch(sp, len(chainIDs))
	x.IDs = chainIDs
	var stream rng.Stream
	for c, id := range chainIDs {
		stream.Reset(seed, id, 0, UseInit)
		if len(sp.Constraints) > 0 && sp.Constrained(x.Chain(c), stream.IntN) == nil { // what cannot be met is found by Space.Check
			continue
		}
		for i := range x.Chain(c) {
			if list := sp.AllowedAt(i); list != nil {
				x.Chain(c)[i] = list[stream.IntN(len(list))]
			} else {
				x.Chain(c)[i] = int32(stream.IntN(sp.Values))
			}
		}
	}
	return x
}

// resize returns s with length n, reallocated only where it must grow. The
// contents are unspecified.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
