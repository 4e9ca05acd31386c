package samplers

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:  "sgdld",
		Doc:   "stochastic gradient discrete Langevin dynamics: jumps by rates from minibatches; weighted draws, biased, less so for small h",
		Paper: "Sun et al. 2023, Stochastic Gradient Discrete Langevin Dynamics, algorithm 1",
		Needs: energies.Gradient,
	}, NewSGDLD)
}

// Values of SGDLDOptions.
const (
	// JumpSites lets every site move on its own.
	JumpSites = "sites"
	// JumpSingle moves one site at most.
	JumpSingle = "single"
	// BalanceSqrt weighs a move by the square root of its probability ratio t.
	BalanceSqrt = "sqrt"
	// BalanceBarker weighs it by t/(1+t).
	BalanceBarker = "barker"
)

// SGDLDOptions are the options of SGDLD; the zero value has the defaults.
type SGDLDOptions struct {
	// Batch is the number of terms in a minibatch; 0 means the exact gradient, which
	// any Differentiable has, otherwise the energy must be an energies.Stochastic.
	Batch int `flag:"batch" default:"0: the exact gradient" doc:"terms of the energy in each minibatch, drawn without replacement"`
	// Jump is JumpSites (the default) or JumpSingle.
	Jump string `flag:"jump" default:"sites" choices:"sites,single" doc:"which sites may move in one step"`
	// Balance is BalanceSqrt (the default) or BalanceBarker.
	Balance string `flag:"balance" default:"sqrt" choices:"sqrt,barker" doc:"rate of a move from its probability ratio t, √t or t/(1+t)"`
	// Polyak is the schedule of h_t, about the number of moves in a step: see
	// ParsePolyak. "" means 1.
	Polyak string `flag:"polyak" default:"1" doc:"moves per step h: a number, or sampling[:min], facility[:min], axc[:min], decay:a,b,min"`
	// PolyakFunc is h_t of any other form, by the number of the step from 0 on, for every
	// step and the one after the last; Polyak must be "" then.
	PolyakFunc func(step int64) float64
	// FixedStep is the simulation time ε of every step, instead of h_t/Z; 0 means none.
	// It is the ablation noP of the paper.
	FixedStep float64 `flag:"fixed-step" default:"none" doc:"simulation time of every step, instead of h divided by the rate of jumps (ablation noP)"`
	// NoCache forgets the minibatches of earlier steps: the ablation noC of the paper.
	NoCache bool `flag:"no-cache" default:"false" doc:"estimate rates from the last minibatch alone (ablation noC)"`
	// Dense reads the gradient itself where the energy offers its softmax.
	Dense bool `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
}

// SGDLD simulates the jump process of rates R(x, z) = g(π(z)/π(x)) between states
// that differ at one site, whose law is π (Sun et al. 2023), with first-order ratios
// exp(β·d[i,v]) of a mean gradient over minibatches:
//
//   - the cache, eq. 12: while a chain stays at x its gradient is the mean over all
//     minibatches drawn there, so that the noise within the exponential averages out;
//   - the Polyak step, eq. 14: ε_t = h_t/Z(x), Z the sum of the rates that leave x;
//   - the weights, eq. 15: a state counts ε_t in estimates, State.Weight, from e^-300 to
//     e^300.
//
// A step moves under I + ε_t·R, in one of two forms. JumpSingle takes it as it stands:
// with probability h_t, at most 1, one site changes, to z with probability R(x,z)/Z.
// JumpSites lets each site leave with probability 1 - exp(-ε_t·r_i), r_i the sum of its
// rates, for a value in proportion to its rate, so that h_t may exceed 1 and the cache
// serves at h_t = 1 too, where a single jump always leaves.
//
// Draws follow π as h goes to zero where ratios are exact to first order; with a fixed h,
// other energies, or no cache they are biased. No step is rejected, but a state of
// probability zero is not entered. A step costs one evaluation, of the minibatch at the
// state it led to; with the exact gradient only where the state changed. U of a state is
// the mean of the estimates of its minibatches.
//
// Rates read off the energy's own softmax are those of the gradient while differences of
// ½β·g stay within some 87 nats, the range of float32; beyond, as at inverse temperatures
// of thousands, all are as good as equal, and Dense keeps them apart.
//
// A snapshot holds no cache but the step at which it begins (State.Since): going on draws
// and evaluates its minibatches again.
type SGDLD struct {
	gradient
	estimates bool // from minibatches
	batch     int
	caches    bool
	single    bool
	barker    bool
	polyak    func(step int64) float64 // nil: fixed
	fixed     float64

	next    move    // proposed codes; U of what is asked for elsewhere
	first   []int64 // step of the first minibatch of each chain's cache, [chain]
	est     estimate
	retry   estimate
	order   []int // 0..terms-1
	workers []rng.Stream
}

var (
	_ Annealer = (*SGDLD)(nil)
	_ Keeper   = (*SGDLD)(nil)
	_ Weigher  = (*SGDLD)(nil)
)

// NewSGDLD returns the kernel for e, which must be Differentiable, and an energy with
// minibatches where minibatches are asked for. Errors are *energies.UnsupportedError,
// *OptionError or *energies.SpaceError.
func NewSGDLD(e energies.Energy, o SGDLDOptions) (*SGDLD, error) {
	bad := func(option string, value any, reason string) (*SGDLD, error) {
		return nil, &OptionError{"sgdld", option, fmt.Sprint(value), reason}
	}
	switch o.Jump {
	case "", JumpSites, JumpSingle:
	default:
		return bad("jump", o.Jump, "not one of sites, single")
	}
	switch o.Balance {
	case "", BalanceSqrt, BalanceBarker:
	default:
		return bad("balance", o.Balance, "not one of sqrt, barker")
	}
	k := &SGDLD{batch: o.Batch, caches: o.Batch > 0 && !o.NoCache, single: o.Jump == JumpSingle, barker: o.Balance == BalanceBarker, fixed: o.FixedStep}
	var err error
	if k.gradient, err = newGradient("sgdld", e, o.Dense || k.barker); err != nil {
		return nil, err
	}
	switch {
	case o.Batch < 0:
		return bad("batch", o.Batch, "must not be negative")
	case !(o.FixedStep >= 0) || math.IsInf(o.FixedStep, 1):
		return bad("fixed-step", o.FixedStep, "must be positive and finite")
	case o.FixedStep > 0 && (o.Polyak != "" || o.PolyakFunc != nil):
		return bad("fixed-step", o.FixedStep, "excludes the option polyak")
	case o.Polyak != "" && o.PolyakFunc != nil:
		return bad("polyak", o.Polyak, "excludes PolyakFunc")
	case o.PolyakFunc != nil:
		k.polyak = o.PolyakFunc
	case o.FixedStep == 0:
		if k.polyak, err = ParsePolyak(o.Polyak); err != nil {
			return bad("polyak", o.Polyak, err.(*ScheduleError).Reason)
		}
		if _, err := k.time(0); err != nil { // the largest, as none increases
			return nil, err
		}
	}
	if o.Batch > 0 {
		can := k.energy.Capabilities()
		if !can.Answers.Has(energies.Estimate) {
			return nil, &energies.UnsupportedError{Who: "samplers: sgdld with minibatches", Want: energies.Estimate}
		}
		k.estimates = true
		terms := can.Terms
		if o.Batch > terms {
			return bad("batch", o.Batch, fmt.Sprintf("the energy has %d terms", terms))
		}
		for j := range terms {
			k.order = append(k.order, j)
		}
	}
	k.workers = make([]rng.Stream, runtime.GOMAXPROCS(0))
	return k, nil
}

// Keeps implements Keeper.
func (k *SGDLD) Keeps() (since bool, aux int) { return k.caches, 0 }

// Weighs implements Weigher.
func (k *SGDLD) Weighs() bool { return true }

// Init implements Kernel.
func (k *SGDLD) Init(ctx context.Context, s *State) error {
	n := s.Chains()
	if !k.estimates {
		if err := k.exact(ctx, &s.Local, s.X, s); err != nil {
			return err
		}
		s.Evaluations.Gradient += int64(n)
	} else {
		if k.caches && len(s.Since) != n {
			s.Since = resize(s.Since, n)
			for c := range s.Since {
				s.Since[c] = s.Step
			}
		}
		if err := k.replay(ctx, s); err != nil {
			return err
		}
	}
	if err := checkInit(s); err != nil {
		return err
	}
	return k.weigh(s)
}

// Step implements Kernel.
func (k *SGDLD) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info.Reset(s.Chains())
	if s.Annealed && s.half != 0.5*s.Beta {
		if err := k.temperRates(ctx, &s.Local, s.X, s.Beta); err != nil {
			return err
		}
		if err := s.checkTempered(); err != nil {
			return err
		}
	}
	h, err := k.time(s.Step)
	if err != nil {
		return err
	}
	if _, err := k.time(s.Step + 1); err != nil { // weighs the states this step leads to
		return err
	}
	k.propose(s, math.Log(h))
	if err := k.arrive(ctx, s, info); err != nil {
		return err
	}
	k.commit(s, info)
	return k.weigh(s)
}

// time returns h of a step, or ε where that is fixed.
func (k *SGDLD) time(step int64) (float64, error) {
	if k.polyak == nil {
		return k.fixed, nil
	}
	h := k.polyak(step)
	reason := ""
	switch {
	case !(h > 0) || math.IsInf(h, 1):
		reason = fmt.Sprintf("h of step %d must be positive and finite", step)
	case h > 1 && k.single:
		reason = fmt.Sprintf("h of step %d is a probability with jump=single, at most 1; jump=sites takes more", step)
	default:
		return h, nil
	}
	return 0, &OptionError{"sgdld", "polyak", fmt.Sprintf("%.6g", h), reason}
}

// commit makes the states arrived at those of s.
func (k *SGDLD) commit(s *State, info *Info) {
	d, values := s.X.Space.Sites, s.X.Space.Values
	for c := range info.Hops {
		old, now := s.X.Chain(c), k.next.X.Chain(c)
		for i := range old {
			if old[i] != now[i] {
				info.Hops[c]++
			}
		}
		copy(old, now)
	}
	if len(k.est.chains) == s.Chains() {
		s.Local, k.est.Local = k.est.Local, s.Local
	} else {
		for j, c := range k.est.chains {
			s.setChain(c, &k.est.Local, j, d, values)
		}
	}
	if k.caches {
		copy(s.Since, k.first)
	}
	s.Step++
	s.Evaluations.add(info.Evaluations)
}

// weightRange bounds the logarithm of a weight, so that the sum of any number of them is a
// number, as is that of their squares. Rates are exponentials of differences of U, and the
// time in a state that is left for none but much worse ones has no bound.
const weightRange = 300

// weigh fills s.Weight with ε of the step to come.
func (k *SGDLD) weigh(s *State) error {
	h, err := k.time(s.Step)
	if err != nil {
		return err
	}
	s.Weight = resize(s.Weight, s.Chains())
	for c := range s.Weight {
		s.Weight[c] = h
		if k.polyak != nil {
			logWeight := math.Log(h) - logTotal(&s.Local, c, s.X.Space.Sites)
			s.Weight[c] = math.Exp(min(max(logWeight, -weightRange), weightRange))
		}
	}
	return nil
}
