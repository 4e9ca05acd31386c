package infill

import (
	"context"
	"slices"
)

// pairWords divided by the number of blanks is the number of first words that are tried for a pair.
const pairWords = 600

// pairSeconds is the number of words tried in the second blank of a pair for each in the first.
const pairSeconds = 5

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

// pairs refills each two neighbouring blanks, with many words in the first and with those that are then most
// probable in the second. An opening quotation mark is unlikely while the closing one is masked, but once both
// are there each makes the other likely, and U has both terms.
func (s *search) pairs(ctx context.Context, codes []int32) ([]trial, error) {
	s.show("pairs of blanks", 0, len(codes)-1)
	var now, first, second []query
	for i, w := range codes {
		now = append(now, query{codes, i, w})
		if i > 0 {
			mask := s.p.m.tok.Mask
			first = append(first, query{with(with(codes, i-1, mask), i, mask), i - 1, -1})
		}
	}
	if err := s.t.ask(ctx, slices.Concat(now, first)); err != nil {
		return nil, err
	}
	terms := make([]float64, len(codes))
	for i, q := range now {
		terms[i], _ = s.t.at(q).logProb(q.word)
	}
	for _, q := range first {
		top := s.t.at(q).top
		for _, c := range top[:min(len(top), pairWords/len(codes))] {
			if s.p.admits(q.codes, q.site, c.word) {
				second = append(second, query{with(q.codes, q.site, c.word), q.site + 1, -1})
			}
		}
	}
	if err := s.t.ask(ctx, second); err != nil {
		return nil, err
	}
	var trials []trial
	for _, q := range second {
		expect := slices.Clone(terms)
		expect[q.site-1], expect[q.site] = 0, 0
		left := pairSeconds
		for _, c := range s.t.at(q).top {
			if left > 0 && s.p.admits(q.codes, q.site, c.word) {
				// The prediction at the second blank is known, and its neighbours change the most.
				trials = append(trials, trial{codes: with(q.codes, q.site, c.word), order: nearest(len(codes), q.site), expect: expect})
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
