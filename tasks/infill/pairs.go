package infill

import (
	"cmp"
	"context"
	"slices"
)

// pairTrials is the number of fillings that are evaluated for each order of each pair of blanks.
const pairTrials = 10

// pairSlack is the largest loss of log-probability, in nats, at which a new pair of words is tried. The
// log-probability of a pair is that of its first word with both blanks masked, plus that of its second
// word with the first filled in.
const pairSlack = 2

// tripleBeam is the width of the beams that refill three blanks.
const tripleBeam = 5

// refine evaluates new fillings of the best one and improves the pool, until the best filling stays.
// Changes of one word cannot reach a filling in which words depend on each other.
func (s *search) refine(ctx context.Context, fillings func(context.Context, []int32) ([]trial, error)) error {
	for before := ""; ; {
		best := s.pool[0].codes
		if before == stateKey(best) {
			return nil
		}
		before = stateKey(best)
		if err := s.refill(ctx, best, fillings); err != nil {
			return err
		}
	}
}

// refill evaluates new fillings of one and improves the pool.
func (s *search) refill(ctx context.Context, codes []int32, fillings func(context.Context, []int32) ([]trial, error)) error {
	trials, err := fillings(ctx, codes)
	if err != nil {
		return err
	}
	if err := s.evaluate(ctx, trials); err != nil {
		return err
	}
	return s.climb(ctx, s.o.Pool)
}

// triples refills each three neighbouring blanks by narrow beams from both sides.
func (s *search) triples(ctx context.Context, codes []int32) (trials []trial, err error) {
	for i := range len(codes) - 2 {
		for _, order := range [][]int{{i, i + 1, i + 2}, {i + 2, i + 1, i}} {
			masked := slices.Clone(codes)
			for _, k := range order {
				masked[k] = s.p.m.tok.Mask
			}
			list, err := s.beam(ctx, "three blanks", tripleBeam, masked, order)
			if err != nil {
				return nil, err
			}
			trials = append(trials, list...)
		}
	}
	return trials, nil
}

// pairOrder is an order in which two blanks are filled anew.
type pairOrder struct {
	first, second int
	open          query   // both masked
	least         float64 // log-probability that the new words need
	after         []query // the first filled, the second masked
	lp            []float64
}

// pairs returns the most probable new words of all neighbouring pairs of blanks.
func (s *search) pairs(ctx context.Context, codes []int32) ([]trial, error) {
	s.show("pairs of blanks", 0, len(codes)-1)
	var list []pairOrder
	var ask []query
	for i := 1; i < len(codes); i++ {
		for _, r := range []pairOrder{{first: i - 1, second: i}, {first: i, second: i - 1}} {
			masked := slices.Clone(codes)
			masked[r.first], masked[r.second] = s.p.m.tok.Mask, s.p.m.tok.Mask
			r.open = query{masked, r.first, codes[r.first]}
			list = append(list, r)
			ask = append(ask, r.open, query{codes, r.second, codes[r.second]})
		}
	}
	if err := s.t.ask(ctx, ask); err != nil {
		return nil, err
	}
	var seconds []query
	for k := range list {
		r := &list[k]
		now, _ := s.t.at(r.open).logProb(codes[r.first])
		then, _ := s.t.at(ask[2*k+1]).logProb(codes[r.second])
		r.least = now + then - pairSlack
		for _, c := range s.t.at(r.open).top {
			if c.lp > r.least && s.p.admits(r.open.codes, r.first, c.word) {
				y := slices.Clone(r.open.codes)
				y[r.first] = c.word
				r.after, r.lp = append(r.after, query{y, r.second, -1}), append(r.lp, c.lp)
			}
		}
		seconds = append(seconds, r.after...)
	}
	if err := s.t.ask(ctx, seconds); err != nil {
		return nil, err
	}
	var trials []trial
	for _, r := range list {
		trials = append(trials, s.refilled(r)...)
	}
	return trials, nil
}

// refilled returns the most probable new fillings of one pair.
func (s *search) refilled(r pairOrder) []trial {
	type pair struct {
		codes []int32
		lp    float64
	}
	var pairs []pair
	for k, q := range r.after {
		for _, c := range s.t.at(q).top {
			if lp := r.lp[k] + c.lp; lp > r.least && s.p.admits(q.codes, r.second, c.word) {
				y := slices.Clone(q.codes)
				y[r.second] = c.word
				if !s.seen[stateKey(y)] {
					pairs = append(pairs, pair{y, lp})
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.lp, a.lp) })
	var out []trial
	for _, x := range pairs[:min(len(pairs), pairTrials)] {
		// The prediction at the second blank is known, and its neighbours change the most.
		out = append(out, trial{codes: x.codes, order: nearest(len(x.codes), r.second)})
	}
	return out
}
