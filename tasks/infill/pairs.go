package infill

import (
	"context"
	"errors"
	"slices"
)

// pairWords divided by the number of blanks is the number of first words that are tried for a pair.
const pairWords = 600

// allPairWords is the number of first words that are tried for all pairs in both orders together.
// Texts of more than allPairBlanks blanks have too many pairs for that.
const (
	allPairWords  = 1800
	allPairBlanks = 8
)

// pairSeconds is the number of words tried in the second blank of a pair for each in the first.
const pairSeconds = 5

// pairOrder names two blanks of which the first is filled before the second.
type pairOrder struct{ first, second int }

// pairOrders returns the pairs that are refilled, neighbouring blanks from the left to the right or all pairs in
// both orders, and the number of first words for each.
func (s *search) pairOrders(blanks int) (list []pairOrder, words int) {
	for i := range blanks {
		for j := range blanks {
			if j == i+1 || s.o.allPairs && i != j {
				list = append(list, pairOrder{i, j})
			}
		}
	}
	if s.o.allPairs {
		return list, max(1, allPairWords/max(1, len(list)))
	}
	return list, max(1, pairWords/blanks)
}

// refill evaluates pairs of a filling and improves the pool. Changes of one word cannot reach a
// filling in which words depend on each other.
func (s *search) refill(ctx context.Context, codes []int32) error {
	trials, err := s.pairs(ctx, codes)
	if err != nil {
		return err
	}
	if err := s.evaluate(ctx, trials); err != nil {
		return err
	}
	return s.climb(ctx, s.o.Pool)
}

// pairs refills two blanks at a time, with many words in the first and with those that are then most
// probable in the second. An opening quotation mark is unlikely while the closing one is masked, but once both
// are there each makes the other likely, and U has both terms.
func (s *search) pairs(ctx context.Context, codes []int32) ([]trial, error) {
	s.show("pairs of blanks", 0, len(codes)-1)
	orders, words := s.pairOrders(len(codes))
	var now, open []query
	for i, w := range codes {
		now = append(now, query{codes, i, w})
	}
	for _, o := range orders {
		mask := s.p.m.tok.Mask
		open = append(open, query{with(with(codes, o.first, mask), o.second, mask), o.first, -1})
	}
	firsts := newPredictions(s.t.energy, words)
	if err := errors.Join(s.t.ask(ctx, now), firsts.ask(ctx, open)); err != nil {
		return nil, err
	}
	terms := make([]float64, len(codes))
	for i, q := range now {
		terms[i], _ = s.t.at(q).logProb(q.word)
	}
	var seconds []query
	var of []pairOrder
	for k, q := range open {
		for _, c := range firsts.at(q).top {
			if s.p.admits(q.codes, q.site, c.word) {
				seconds = append(seconds, query{with(q.codes, q.site, c.word), orders[k].second, -1})
				of = append(of, orders[k])
			}
		}
	}
	if err := s.t.ask(ctx, seconds); err != nil {
		return nil, err
	}
	var trials []trial
	for k, q := range seconds {
		first := of[k].first
		expect := slices.Clone(terms)
		expect[first], expect[q.site] = 0, 0
		// The prediction at the second blank is known, and the first changes the most.
		order := slices.DeleteFunc(nearest(len(codes), q.site), func(i int) bool { return i == first })
		order = slices.Insert(order, 1, first)
		left := pairSeconds
		for _, c := range s.t.at(q).top {
			if left > 0 && s.p.admits(q.codes, q.site, c.word) {
				trials = append(trials, trial{codes: with(q.codes, q.site, c.word), order: order, expect: expect})
				left--
			}
		}
	}
	return trials, nil
}

// with returns codes with another word in one blank.
func with(codes []int32, site int, word int32) []int32 {
	y := slices.Clone(codes)
	y[site] = word
	return y
}
