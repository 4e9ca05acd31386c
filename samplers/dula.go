package samplers

import (
	"context"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:  "dula",
		Doc:   "discrete unadjusted Langevin: all sites at once, never rejected; biased, less so for small steps",
		Paper: "Zhang, Liu, Liu 2022 (arXiv:2206.09914), algorithm 1 without the Metropolis step",
		Needs: energies.Gradient,
	}, NewDULA)
}

// DULAOptions are the options of DULA; the zero value has the defaults.
type DULAOptions struct {
	// StepSize is α of the proposal; 0 means 0.1·D² of neighbouring values, which
	// makes the smallest move 5 nats dear (0.1 for binary codes, as in the paper;
	// 0.2 for categorical ones). It is never adapted: there is no acceptance
	// probability to adapt it to.
	StepSize float64 `flag:"step-size" default:"0.1 binary or ordinal, 0.2 categorical, 0.4 spin" doc:"step size α of the Langevin proposal"`
	// Dense reads the gradient itself where the energy offers its softmax:
	// slower, and the oracle that the fast path is tested against.
	Dense bool `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
}

// DULA is the discrete unadjusted Langevin algorithm (Zhang, Liu and Liu 2022):
// the discrete Langevin proposal, always accepted. One gradient a step. Its law
// differs from π by a bias that vanishes with α for log-quadratic U (theorem
// 5.1), at the price of slower moves.
//
// A proposal of probability zero (U = -Inf) is not taken, since no gradient need
// exist there. Left out: preconditioning, minibatch gradients.
type DULA struct{ dlp }

var _ StepSizer = (*DULA)(nil)

// NewDULA returns the kernel for e, which must be Differentiable; if it is
// Tilted, that is used. Errors are *energies.UnsupportedError, *OptionError or
// *energies.SpaceError.
func NewDULA(e energies.Energy, o DULAOptions) (*DULA, error) {
	k, err := newDLP("dula", e, o.StepSize, 0.1, o.Dense)
	if err != nil {
		return nil, err
	}
	return &DULA{k}, nil
}

// StepSize implements StepSizer: α is never adapted.
func (k *DULA) StepSize() (start, target float64) { return k.start, 0 }

// Step implements Kernel.
func (k *DULA) Step(ctx context.Context, s *State, info *Info) error {
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
	for c, u := range k.next.U {
		if !isZero(u) {
			info.Accept[c], info.Accepted[c] = 1, true
		}
	}
	info.Evaluations.Gradient = int64(s.Chains())
	s.commit(&k.next, info)
	return nil
}
