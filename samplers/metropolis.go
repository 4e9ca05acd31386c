package samplers

import (
	"context"
	"math"
)

// Proposal is what a Metropolis algorithm supplies. Its methods are called for chains in
// parallel; what they draw must come from the worker's stream, already positioned.
type Proposal interface {
	// Draw writes a proposal x' for chain c of s to next, [site], and returns log q(x'|x).
	Draw(w *Worker, s *State, c int, next []int32) float64
	// LogReverse returns log q(x|x') from what is known of the proposal, chain c of next.
	LogReverse(w *Worker, s *State, c int, next *Point) float64
}

// Metropolis is the kernel of a Proposal: it accepts with probability
//
//	min(1, exp(β(U(x') - U(x))) · q(x|x')/q(x'|x)).
//
// U and the gradient of the current state are kept, so a step costs one evaluation, at the
// proposal, whether it is accepted or not.
type Metropolis struct {
	Evaluator
	// Proposal draws.
	Proposal Proposal
	// Unadjusted accepts every proposal of positive probability and never calls LogReverse.
	Unadjusted bool
	// Prepare is called before the proposals of a step are drawn; it may be nil.
	Prepare func(s *State)
	// Tuner adapts a parameter of the proposal in warm-up; nil adapts nothing.
	Tuner *Tuner
	// Adapt, which may be nil, adapts other parameters after a step of warm-up, given the
	// acceptance probabilities, [chain].
	Adapt func(s *State, accept []float64)

	next    Point
	forward []float64 // log q(x'|x), [chain]
	workers Workers
	// What the workers call, bound once: a closure a step would be an allocation a step.
	draw, decide func(w *Worker, c int)
	part         func(w *Worker, lo, hi int)
	state        *State
	info         *Info
	ctx          context.Context
	failed       firstError
}

var _ Kernel = (*Metropolis)(nil)

// Step implements Kernel.
func (k *Metropolis) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info.Reset(s.Chains())
	if err := k.Refresh(ctx, s); err != nil {
		return err
	}
	if k.draw == nil {
		k.draw, k.decide, k.part = k.drawChain, k.decideChain, k.stepPart
	}
	k.state, k.info, k.ctx = s, info, ctx
	k.next.like(s.X)
	k.forward = resize(k.forward, s.Chains())
	if k.Prepare != nil {
		k.Prepare(s)
	}
	if err := k.move(); err != nil {
		return err
	}
	k.count(&info.Evaluations, s.Chains())
	s.Commit(&k.next, info)
	return nil
}

// move draws, evaluates and decides. Where the energy allows, each worker takes some chains through all
// of it: waking workers up three times would take as long as a step of a small energy.
func (k *Metropolis) move() error {
	s := k.state
	if k.divisible() {
		k.preparePart(&k.next, s.Beta)
		k.workers.Parts(s, k.part)
		return k.failed.take()
	}
	k.workers.Each(s, k.draw)
	if err := k.Evaluate(k.ctx, &k.next, s.Beta); err != nil {
		return err
	}
	if err := s.Reject(&k.next); err != nil {
		return err
	}
	k.workers.Each(s, k.decide)
	return nil
}

// stepPart makes the step of the chains in [lo, hi).
func (k *Metropolis) stepPart(w *Worker, lo, hi int) {
	for c := lo; c < hi; c++ {
		k.drawChain(w, c)
	}
	err := k.evaluatePart(k.ctx, &k.next, lo, hi)
	if err == nil {
		err = k.state.rejectPart(&k.next, lo, hi)
	}
	if err != nil {
		k.failed.add(lo, err)
		return
	}
	for c := lo; c < hi; c++ {
		k.decideChain(w, c)
	}
}

func (k *Metropolis) drawChain(w *Worker, c int) {
	k.state.Stream(&w.Stream, c, UseProposal)
	k.forward[c] = k.Proposal.Draw(w, k.state, c, k.next.X.Chain(c))
}

func (k *Metropolis) decideChain(w *Worker, c int) {
	s, u := k.state, k.next.U[c]
	switch {
	case isZero(u):
		s.Metropolis(&w.Stream, k.info, c, math.Inf(-1))
	case k.Unadjusted:
		k.info.Accept[c], k.info.Accepted[c] = 1, true
	default:
		logRatio := s.DeltaU(c, u) + k.Proposal.LogReverse(w, s, c, &k.next) - k.forward[c]
		s.Metropolis(&w.Stream, k.info, c, logRatio)
	}
	if k.info.Accepted[c] {
		k.info.Hops[c] = s.hops(&k.next, c)
	}
}

// adapt declares the tuner's parameter, which warm-up adapts, or leaves at its start.
func (k *Metropolis) adapt(t *Tuner, adapts bool) {
	if k.Specs = t.Specs(); adapts {
		k.Tuner = t
	} else {
		k.Specs = k.Specs[:1]
	}
}

// Vars implements Kernel.
func (k *Metropolis) Vars() []VarSpec { return k.Specs }

// Tune implements Kernel.
func (k *Metropolis) Tune(s *State, info *Info, last bool) {
	if k.Tuner != nil {
		k.Tuner.Tune(s, info.Accept, last)
	}
	if k.Adapt != nil {
		k.Adapt(s, info.Accept)
	}
}
