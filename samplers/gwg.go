package samplers

import (
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:       "gwg",
		Doc:        "Gibbs with gradients: one site a step, site and value chosen by the gradient",
		Paper:      "Grathwohl, Swersky, Hashemi, Duvenaud, Maddison 2021 (arXiv:2102.04509), algorithm 1",
		Needs:      energies.Gradient,
		Reversible: true,
	}, NewGWG)
}

// GWGOptions are the options of GWG; the zero value has the defaults.
type GWGOptions struct {
	// Balance and Dense are those of DULAOptions.
	Balance string `flag:"balance" default:"sqrt" choices:"sqrt,barker,min,max" doc:"balancing function g of the probability ratio t of a move: √t, t/(1+t), min(1,t) or max(1,t)"`
	Dense   bool   `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
}

// NewGWG returns Gibbs with gradients (Grathwohl et al. 2021) for e, which must have a
// gradient: a Metropolis kernel of one change
//
//	q(i,v|x) ∝ g(exp(β·d[i,v]))   over all sites i and values v ≠ x_i,
//
// with g = √ in the paper. It has no step size. Where no site has another value of positive
// weight the chain stays. Left out: several draws per gradient. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func NewGWG(e energies.Energy, o GWGOptions) (*Metropolis, error) {
	balance, err := parseBalance("gwg", o.Balance)
	if err != nil {
		return nil, err
	}
	eval, err := NewInformed("gwg", e, balance, o.Dense)
	if err != nil {
		return nil, err
	}
	return &Metropolis{Evaluator: eval, Proposal: singleChange{}}, nil
}

// singleChange is the proposal of GWG.
type singleChange struct{}

// Draw implements Proposal.
func (singleChange) Draw(w *Worker, s *State, c int, next []int32) float64 {
	copy(next, s.X.Chain(c))
	if slices.Max(s.LogLeaves(c)) == math.Inf(-1) {
		return 0
	}
	i, total := s.PickSite(w, c, w.Float64())
	next[i] = s.Pick(c, i, w.Float64())
	return s.LogWeight(c, i, next[i]) - total
}

// LogReverse implements Proposal.
func (singleChange) LogReverse(_ *Worker, s *State, c int, next *Point) float64 {
	for i, v := range s.X.Chain(c) {
		if v != next.X.Chain(c)[i] {
			return next.LogWeight(c, i, v) - next.LogLeaveAny(c)
		}
	}
	return 0 // the chain stays
}
