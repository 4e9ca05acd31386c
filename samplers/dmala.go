package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:   "dmala",
		Doc:    "discrete Metropolis-adjusted Langevin: all sites at once, corrected; step size adapted in warm-up",
		Paper:  "Zhang, Liu, Liu 2022 (arXiv:2206.09914), algorithm 1",
		Exact:  true,
		Adapts: true,
		Needs:  energies.Gradient,
	}, NewDMALA)
}

// DMALAOptions are the options of DMALA; the zero value has the defaults.
type DMALAOptions struct {
	// StepSize is α of the proposal, the same in every chain. 0 adapts it in
	// warm-up, chain by chain, to an acceptance of TargetAcceptance, from 0.2·D²
	// of neighbouring values (0.2 for binary codes, as in the paper; 0.4 for
	// categorical ones); without a warm-up it stays there.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"step size α of the Langevin proposal"`
	// Dense reads the gradient itself where the energy offers its softmax:
	// slower, and the oracle that the fast path is tested against.
	Dense bool `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
}

// DMALA is the discrete Metropolis-adjusted Langevin algorithm (Zhang, Liu and
// Liu 2022): the discrete Langevin proposal, accepted with probability
//
//	min(1, exp(β(U(x') - U(x))) · Π_i q_i(x_i|x') / Π_i q_i(x'_i|x)).
//
// with β = 1 but in annealed runs. U and gradient of the current state are kept, so a step costs one evaluation
// of both, at the proposal, whether it is accepted or not. Left out:
// preconditioning, minibatch gradients.
type DMALA struct {
	dlp
	adapt  bool
	accept rng.Stream
}

var _ StepSizer = (*DMALA)(nil)

// NewDMALA returns the kernel for e, which must be Differentiable; if it is
// Tilted, that is used. Errors are *energies.UnsupportedError, *OptionError or
// *energies.SpaceError.
func NewDMALA(e energies.Energy, o DMALAOptions) (*DMALA, error) {
	k, err := newDLP("dmala", e, o.StepSize, 0.2, o.Dense)
	if err != nil {
		return nil, err
	}
	return &DMALA{dlp: k, adapt: o.StepSize == 0}, nil
}

// StepSize implements StepSizer.
func (k *DMALA) StepSize() (start, target float64) {
	if k.adapt {
		return k.start, TargetAcceptance
	}
	return k.start, 0
}

// Step implements Kernel.
func (k *DMALA) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info.Reset(s.Chains())
	if err := k.anneal(ctx, s); err != nil {
		return err
	}
	k.propose(s)
	if err := k.evalFor(ctx, &k.next.Local, k.next.X, s); err != nil {
		return err
	}
	if err := k.next.refuse(s); err != nil {
		return err
	}
	k.reverse(s)
	for c := range info.Accept {
		logRatio := s.gain(s.U[c], k.next.U[c]) + k.backward[c] - k.forward[c]
		metropolis(&k.accept, s, info, c, logRatio)
	}
	info.Evaluations.Gradient = int64(s.Chains())
	s.commit(&k.next, info)
	return nil
}

// metropolis accepts chain c's proposal with probability min(1, exp(logRatio)).
func metropolis(stream *rng.Stream, s *State, info *Info, c int, logRatio float64) {
	stream.Reset(s.Seed, s.ChainIDs[c], s.Step, useAccept)
	info.Accept[c] = math.Exp(min(0, logRatio))
	info.Accepted[c] = stream.Float64() < info.Accept[c]
}
