package samplers

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Whole draws whole states from a distribution q whose probabilities it can compute, such as a
// model that predicts one site after the other. q need not be normalised. A Whole keeps nothing of its calls.
type Whole interface {
	// Draw writes a state drawn from q for each chain to x, [chain, site], and its log q in nats to
	// logQ, [chain]. uniform returns the next number in (0, 1) of a chain's random stream.
	Draw(ctx context.Context, x energies.Batch, logQ []float64, uniform func(c int) float64) error
	// LogQ writes log q of states, [chain].
	LogQ(ctx context.Context, x energies.Batch, logQ []float64) error
}

// Independence proposes whole states that do not depend on the present one, between the steps of an
// inner kernel: after every so many of these each chain draws x' from q and moves there with probability
//
//	min(1, exp(β(U(x') - U(x))) · q(x) / q(x')).
//
// Such a step leaves π^β invariant (Tierney 1994, section 2.3.3), and so does the inner kernel's. It moves a chain anywhere
// at once where q is near the target. A chain stays long in states to which q gives far less than the target
// does; the inner kernel takes it out of those, and [Darting] where they are known.
type Independence struct {
	Kernel
	q     Whole
	every int64

	next   Point
	logQ   []float64 // of the states, [chain]
	stream []rng.Stream
}

var _ Kernel = (*Independence)(nil)

// NewIndependence returns the kernel, which proposes after every so many steps of inner. inner must keep nothing of a
// state but U, as mwg, gibbs-model and gibbs do: Init fails for kernels with gradients. Errors
// are *OptionError.
func NewIndependence(inner Kernel, q Whole, every int) (*Independence, error) {
	if every < 1 {
		return nil, &OptionError{"independence", "every", strconv.Itoa(every), "must be positive"}
	}
	return &Independence{Kernel: inner, q: q, every: int64(every)}, nil
}

// Init implements Kernel.
func (k *Independence) Init(ctx context.Context, s *State) error {
	if err := k.Kernel.Init(ctx, s); err != nil {
		return err
	}
	return onlyU("independence", s)
}

// Step implements Kernel. Info has the acceptance of the inner kernel; hops count all sites that changed.
func (k *Independence) Step(ctx context.Context, s *State, info *Info) error {
	if (s.Step+1)%k.every != 0 {
		return k.Kernel.Step(ctx, s, info)
	}
	codes, u, evaluations := slices.Clone(s.X.Codes), slices.Clone(s.U), s.Evaluations
	if err := k.Kernel.Step(ctx, s, info); err != nil {
		return err
	}
	err := k.propose(ctx, s, info)
	if err != nil { // the inner kernel's step is taken back
		copy(s.X.Codes, codes)
		copy(s.U, u)
		s.Step, s.Evaluations = s.Step-1, evaluations
	}
	return err
}

func (k *Independence) propose(ctx context.Context, s *State, info *Info) error {
	n := s.Chains()
	k.next.like(s.X)
	k.next.U, k.logQ, k.stream = resize(k.next.U, n), resize(k.logQ, 2*n), resize(k.stream, n)
	for c := range n {
		s.Stream(&k.stream[c], c, UseWhole)
	}
	now, then := k.logQ[:n], k.logQ[n:]
	if err := k.q.LogQ(ctx, s.X, now); err != nil {
		return err
	}
	if err := k.q.Draw(ctx, k.next.X, then, func(c int) float64 { return k.stream[c].Float64() }); err != nil {
		return err
	}
	if err := k.Energy().LogDensity(ctx, k.next.U, k.next.X); err != nil {
		return err
	}
	info.Evaluations.Density += int64(n)
	s.Evaluations.Density += int64(n)
	for c, u := range k.next.U {
		if nonFinite(u) {
			if !s.RejectNonFinite {
				return &NonFiniteError{s.ChainIDs[c], s.Step, "log-density", u, slices.Clone(k.next.X.Chain(c))}
			}
			k.next.U[c] = math.Inf(-1)
		}
	}
	for c, u := range k.next.U {
		if k.stream[c].Float64() < math.Exp(min(0, s.DeltaU(c, u)+now[c]-then[c])) {
			info.Hops[c] += s.hops(&k.next, c)
			copy(s.X.Chain(c), k.next.X.Chain(c))
			s.U[c] = u
		}
	}
	return nil
}

// onlyU returns an error where a kernel keeps more of a state than U.
func onlyU(sampler string, s *State) error {
	if s.Grad != nil || s.Tilt != nil || s.levels != nil || s.packed != nil || s.inner != nil {
		return &OptionError{sampler, "inner", "", "must be a sampler that keeps nothing of a state but its log-density"}
	}
	return nil
}
