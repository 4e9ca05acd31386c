package infill

import (
	"context"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// wordByWord draws whole fillings: from the first blank to the last, a word from the model's prediction for
// it, at the temperature of the energy, while the blanks behind it are masked. It is a [samplers.Whole].
type wordByWord struct{ p *Problem }

// Draw implements samplers.Whole.
func (q wordByWord) Draw(ctx context.Context, x energies.Batch, logQ []float64, uniform func(c int) float64) error {
	return q.each(ctx, x.Chains(), logQ, func(c, site int, words []int32, weights []float64, total float64) int {
		at, k := uniform(c)*total, 0
		for j, w := range weights {
			if w > 0 {
				k = j // also the last of them, where rounding leaves a rest
			}
			if at -= w; at < 0 {
				break
			}
		}
		x.Chain(c)[site] = words[k]
		return k
	})
}

// LogQ implements samplers.Whole.
func (q wordByWord) LogQ(ctx context.Context, x energies.Batch, logQ []float64) error {
	return q.each(ctx, x.Chains(), logQ, func(c, site int, words []int32, _ []float64, _ float64) int {
		return slices.Index(words, x.Chain(c)[site])
	})
}

// each calls choose for every blank of n chains in turn, with the words allowed there and their weights, whose sum is
// total, and fills in the word whose index it returns. Words that NoRepeat forbids have the weight zero; where it leaves
// none, any word will do, since U of the filling is -Inf. logQ gets the log-probabilities of the fillings.
func (q wordByWord) each(ctx context.Context, n int, logQ []float64, choose func(c, site int, words []int32, weights []float64, total float64) int) error {
	space := q.p.Energy.Space()
	x := energies.Batch{Space: space, Codes: slices.Repeat(q.p.Masked(), n)}
	clear(logQ)
	var weights []float64
	for site := range q.p.Blanks {
		words, rows := space.AllowedAt(site), n
		if site == 0 {
			rows = 1 // the same for all chains
		}
		err := q.p.Energy.Predict(ctx, slices.Repeat([]int{site}, rows), x.Slice(0, rows), func(row int, lp []float32) {
			for c := row; c < n && (c == row || site == 0); c++ {
				codes, top, total := x.Chain(c), math.Inf(-1), 0.0
				weights = weights[:0]
				for _, w := range words {
					l := math.Inf(-1)
					if q.p.admits(codes, site, w) {
						l = float64(lp[w]) / q.p.m.Temperature()
					}
					weights, top = append(weights, l), max(top, l)
				}
				for k, l := range weights {
					weights[k] = 0
					if l > math.Inf(-1) {
						weights[k] = math.Exp(l - top)
					}
					total += weights[k]
				}
				k := choose(c, site, words, weights, total)
				codes[site] = words[k]
				if total > 0 {
					logQ[c] += math.Log(weights[k] / total)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
