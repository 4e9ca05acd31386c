package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:  "gibbs",
		Doc:   "Gibbs: one site a step from its full conditional, by enumeration where the energy has none to offer",
		Paper: "Geman, Geman 1984",
		Exact: true,
	}, NewGibbs)
	Register(Registration{
		Name:  "gibbs-model",
		Doc:   "pseudo-Gibbs: one site a step from the model's own prediction; its law is not that of the energy",
		Paper: "Heckerman et al. 2000 (dependency networks); Wang, Cho 2019 (arXiv:1902.04094)",
		Needs: energies.ModelConditional,
	}, func(e energies.Energy, o GibbsOptions) (*Gibbs, error) {
		o.Conditional = ModelConditional
		return NewGibbs(e, o)
	})
}

// Values of GibbsOptions.
const (
	// SystematicScan visits site t mod d in step t.
	SystematicScan = "systematic"
	// RandomScan visits a uniform site, each chain its own.
	RandomScan = "random"
	// ExactConditional draws from the conditional of exp(U).
	ExactConditional = "exact"
	// ModelConditional draws from energies.ModelConditional.
	ModelConditional = "model"
)

// GibbsOptions are the options of Gibbs; the zero value has the defaults.
type GibbsOptions struct {
	// Scan is SystematicScan (the default) or RandomScan.
	Scan string `flag:"scan" default:"systematic" choices:"systematic,random" doc:"order of the sites"`
	// Conditional is ExactConditional (the default) or ModelConditional. The
	// registry has the second as a sampler of its own, gibbs-model, since it is
	// not exact.
	Conditional string
	// MaxBatch bounds the states in one evaluation when a conditional is
	// enumerated; 0 means 4096. Draws do not depend on it.
	MaxBatch int
}

// Gibbs draws one site a step from its law given the others, and is never
// rejected. The conditional is, in this order: the energy's own
// ([energies.Conditional]), else U at every other allowed value of the site, which
// costs that many evaluations a step; or, if asked for, the model's
// ([energies.ModelConditional]), which leaves no known law invariant.
type Gibbs struct {
	energy   energies.Oracle
	ask      energies.Capability // Conditional, ModelConditional, or 0: enumerate
	random   bool
	maxBatch int

	next   move
	site   []int     // to draw, [chain]
	lp     []float64 // log-conditional, [chain, value]
	weight []float64 // its exponential up to a factor, [value]
	all    []int32   // 0..Values-1
	part   gibbsPart
	stream rng.Stream
}

var _ Annealer = (*Gibbs)(nil)

// NewGibbs returns the kernel for e. Errors are *OptionError, *energies.UnsupportedError
// (no model conditional) or *energies.SpaceError.
func NewGibbs(e energies.Energy, o GibbsOptions) (*Gibbs, error) {
	k := &Gibbs{energy: energies.AsOracle(e), maxBatch: o.MaxBatch}
	if o.MaxBatch == 0 {
		k.maxBatch = 4096
	}
	if k.maxBatch < 1 {
		return nil, &OptionError{"gibbs", "MaxBatch", "negative", "must be positive"}
	}
	switch o.Scan {
	case "", SystematicScan:
	case RandomScan:
		k.random = true
	default:
		return nil, &OptionError{"gibbs", "scan", o.Scan, "not one of systematic, random"}
	}
	switch o.Conditional {
	case "", ExactConditional:
		k.ask = k.energy.Capabilities().Answers & energies.Conditional
	case ModelConditional:
		if !k.energy.Capabilities().Answers.Has(energies.ModelConditional) {
			return nil, &energies.UnsupportedError{Who: "samplers: gibbs-model", Want: energies.ModelConditional}
		}
		k.ask = energies.ModelConditional
	default:
		return nil, &OptionError{"gibbs", "conditional", o.Conditional, "not one of exact, model"}
	}
	if err := e.Space().Check(); err != nil {
		return nil, err
	}
	for v := range int32(e.Space().Values) {
		k.all = append(k.all, v)
	}
	return k, nil
}

// Anneals implements Annealer: a conditional of exp(U) to the power β is one of π^β,
// a model's own belongs to no known law.
func (k *Gibbs) Anneals() bool { return k.ask != energies.ModelConditional }

// Energy implements Kernel.
func (k *Gibbs) Energy() energies.Energy { return k.energy }

// Init implements Kernel.
func (k *Gibbs) Init(ctx context.Context, s *State) error {
	s.Local = Local{U: resize(s.U, s.Chains())}
	if err := k.energy.LogDensity(ctx, s.U, s.X); err != nil {
		return err
	}
	if err := checkInit(s); err != nil {
		return err
	}
	s.Evaluations.Density += int64(s.Chains())
	return nil
}

// Step implements Kernel.
func (k *Gibbs) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, values := s.Chains(), s.X.Space.Values
	info.Reset(n)
	k.next.like(s)
	k.next.U = resize(k.next.U, n)
	copy(k.next.X.Codes, s.X.Codes)
	copy(k.next.U, s.U)
	k.scan(s)
	k.lp = resize(k.lp, n*values)
	given := k.ask != 0
	var err error
	if given {
		err = k.given(ctx, s, &info.Evaluations)
	} else {
		err = k.enumerate(ctx, s, &info.Evaluations)
	}
	if err != nil {
		return err
	}
	for c := range k.site {
		if !k.draw(s, c, given) {
			if !s.RejectNonFinite {
				return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), cloneCodes(s.X, c)}
			}
			continue
		}
		info.Accept[c], info.Accepted[c] = 1, true
	}
	if given {
		if err := k.evaluateMoved(ctx, s, info); err != nil {
			return err
		}
	}
	s.commit(&k.next, info)
	return nil
}

// draw sets chain c's site from its log-conditional, or returns false where that
// is not a law. An enumerated conditional holds U of what was drawn.
func (k *Gibbs) draw(s *State, c int, given bool) bool {
	values := s.X.Space.Values
	lp := k.lp[c*values : (c+1)*values]
	k.weight = resize(k.weight, values)
	if !exponentiate(k.weight, lp, s.InverseTemperature()) {
		return false
	}
	k.stream.Reset(s.Seed, s.ChainIDs[c], s.Step, useProposal)
	v := k.stream.Categorical(k.weight)
	k.next.X.Chain(c)[k.site[c]] = int32(v)
	if !given {
		k.next.U[c] = lp[v]
	}
	return true
}

// scan chooses each chain's site.
func (k *Gibbs) scan(s *State) {
	d := s.X.Space.Sites
	k.site = resize(k.site, s.Chains())
	for c := range k.site {
		k.site[c] = int(s.Step % int64(d))
		if k.random {
			k.stream.Reset(s.Seed, s.ChainIDs[c], s.Step, useSite)
			k.site[c] = k.stream.IntN(d)
		}
	}
}

// exponentiate writes exp(β·lp) up to a factor to w. It returns false where no
// entry has probability or one is NaN or +Inf.
func exponentiate(w, lp []float64, beta float64) bool {
	top := math.Inf(-1)
	for _, t := range lp {
		if nonFinite(t) {
			return false
		}
		top = max(top, t)
	}
	if isZero(top) {
		return false
	}
	for v, t := range lp {
		w[v] = 0
		if !isZero(t) {
			w[v] = math.Exp(beta * (t - top))
		}
	}
	return true
}
