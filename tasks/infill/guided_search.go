package infill

import (
	"cmp"
	"context"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// guidedPool is the number of fillings that a search keeps for the guides to choose from, and guidedStarts the number of
// them that are then improved word by word.
const (
	guidedPool   = 200
	guidedStarts = 3
	guidedWords  = 40 // tried for each blank, by the model's prediction and by the gradient each
)

// guide ranks the fillings that the search found by U with the guides, and improves the best of them: each blank in turn
// gets the best of the words that the prediction and, if all guides have one, the gradient of U say, until none is better.
// Where limited ends before the ranking is done, found being its error or nil, the best that are to be returned are ranked.
func (s *search) guide(ctx, limited context.Context, found error) error {
	if found == nil {
		found = s.weigh(limited)
	}
	if found != nil {
		if limited.Err() != nil && len(s.pool) > 0 {
			s.pool = s.pool[:min(len(s.pool), s.o.Top)]
			return cmp.Or(s.weigh(context.WithoutCancel(ctx)), found)
		}
		return found
	}
	for _, f := range slices.Clone(s.pool[:min(len(s.pool), guidedStarts)]) {
		if err := s.improve(limited, f); err != nil {
			return err
		}
	}
	return nil
}

// weigh adds the terms of the guides to U of the pool.
func (s *search) weigh(ctx context.Context) error {
	x := energies.Batch{Space: s.p.Energy.Space()}
	u := make([]float64, len(s.pool))
	for k, f := range s.pool {
		x.Codes = append(x.Codes, f.codes...)
		if u[k] = f.u; s.p.words.GuidesOnly {
			u[k] = 0
		}
	}
	if err := s.p.addTerms(ctx, u, 1, x); err != nil {
		return err
	}
	for k := range s.pool {
		s.pool[k].u = u[k]
		s.seen[stateKey(s.pool[k].codes)] = true
	}
	s.sort()
	return nil
}

// improve sweeps the blanks of a filling until no word of the candidates is better.
func (s *search) improve(ctx context.Context, f filling) error {
	for better, round := true, 0; better; round++ {
		better = false
		slopes, err := s.slopes(ctx, f.codes)
		if err != nil {
			return err
		}
		for i := range f.codes {
			s.show("words by the guides", i, len(f.codes))
			words, err := s.candidates(ctx, f.codes, i, slopes)
			if err != nil {
				return err
			}
			found, err := s.tryWords(ctx, f.codes, i, words)
			if err != nil {
				return err
			}
			if len(found) > 0 && found[0].u > f.u {
				f, better = found[0], true
			}
		}
	}
	return nil
}

// slopes returns the gradient of U, [blank, word], or nil where a guide has none.
func (s *search) slopes(ctx context.Context, codes []int32) ([]float32, error) {
	for _, t := range s.p.terms {
		if t.fill == nil {
			return nil, nil
		}
	}
	e := guided{s.p.Energy, s.p}
	g := make([]float32, len(codes)*e.Space().Values)
	return g, e.LogDensityGrad(ctx, make([]float64, 1), g, energies.Batch{Space: e.Space(), Codes: codes})
}

// candidates returns the words to try at a blank.
func (s *search) candidates(ctx context.Context, codes []int32, site int, slopes []float32) ([]int32, error) {
	q := query{codes, site, -1}
	if err := s.t.ask(ctx, []query{q}); err != nil {
		return nil, err
	}
	var words []int32
	for _, c := range s.t.at(q).top[:min(guidedWords, len(s.t.at(q).top))] {
		words = append(words, c.word)
	}
	if slopes != nil {
		row := slopes[site*s.p.Energy.Space().Values:]
		list := slices.Clone(s.p.Energy.Space().AllowedAt(site))
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(row[b], row[a]) })
		words = append(words, list[:min(guidedWords, len(list))]...)
	}
	return words, nil
}

// tryWords evaluates a filling with each of the words at a blank that was not seen, and returns these, best first.
func (s *search) tryWords(ctx context.Context, codes []int32, site int, words []int32) ([]filling, error) {
	x := energies.Batch{Space: s.p.Energy.Space()}
	var found []filling
	for _, w := range words {
		next := slices.Clone(codes)
		next[site] = w
		if s.seen[stateKey(next)] || !s.p.admits(codes, site, w) {
			continue
		}
		s.seen[stateKey(next)] = true
		x.Codes, found = append(x.Codes, next...), append(found, filling{codes: next})
	}
	u := make([]float64, len(found))
	if len(found) == 0 {
		return nil, nil
	}
	if err := (guided{s.p.Energy, s.p}).LogDensity(ctx, u, x); err != nil {
		return nil, err
	}
	for k := range found {
		found[k].u = u[k] * s.p.m.temperature()
	}
	s.pool = append(s.pool, found...)
	s.sort()
	slices.SortStableFunc(found, func(a, b filling) int { return cmp.Compare(b.u, a.u) })
	return found, nil
}
