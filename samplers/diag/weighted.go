package diag

import (
	"math"
	"slices"
)

// Draws that count by weights, as those of a jump process by the time spent in each
// state: expectations are estimated by Σ w·f / Σ w. To first order that is the mean of
//
//	f̂ + w·(f - f̂)/w̄,
//
// f̂ the estimate and w̄ the mean weight (the delta method for a ratio of means; Hesterberg
// 1995, "Weighted average importance sampling and defensive mixture distributions",
// section 2). So the standard error is that of this series, autocorrelation included; an
// effective sample size is the number of independent draws from the weighted law whose
// mean has that standard error; and R-hat is that of the series. Where ranks are taken
// they are shares of the weight. With equal weights all equals what the functions without
// weights return.

// SummarizeWeighted is Summarize for draws that count by weights, of the same shape as
// chains, which need not sum to one. All is NaN where a weight is negative or not finite,
// or none is positive; errors and sizes also where so few draws hold all of the weight
// that there is no spread to go by.
func SummarizeWeighted(chains, weights [][]float64) Summary {
	na := math.NaN()
	s := Summary{na, na, na, na, na, na}
	x := flatten(chains)
	w := evenOut(flatten(weights))
	if w == nil || len(x) == 0 || !finite(x) {
		return s
	}
	if len(x) != len(w) {
		panic("diag: draws and weights of different shapes")
	}
	s.Mean = weightedMean(x, w)
	if len(x) > 1 {
		s.SD = math.Sqrt(weightedVariance(x, w))
	}
	if !valid(chains) {
		return s
	}
	error2 := squaredError(chains, rows(w, chains))
	s.MCSE = math.Sqrt(error2)

	halves, even := split(chains), evenOut(flatten(split(weights)))
	if even == nil { // the middle draws have all
		return s
	}
	shares := rows(even, halves)
	scores := weightedScores(halves, shares)
	s.ESSBulk = weightedSize(scores, shares)
	tails := make([]float64, 0, 2)
	for _, limit := range QuantilesWeighted(chains, weights, 0.05, 0.95) {
		below := make([]float64, len(x))
		for k, v := range x {
			if v <= limit {
				below[k] = 1
			}
		}
		tails = append(tails, weightedSize(split(rows(below, chains)), shares))
	}
	s.ESSTail = min(tails[0], tails[1])
	if len(chains) > 1 {
		s.RHat = potentialScale(influence(scores, shares))
		median := QuantilesWeighted(halves, shares, 0.5)[0]
		far := flatten(halves)
		for k, v := range far {
			far[k] = math.Abs(v - median)
		}
		spread := potentialScale(influence(weightedScores(rows(far, halves), shares), shares))
		if spread > s.RHat {
			s.RHat = spread
		}
	}
	return s
}

// WeightESS is (Σ w)²/Σ w², the number of draws with equal weights that would vary as
// much (Kish 1965); it says nothing of autocorrelation. NaN as in SummarizeWeighted.
func WeightESS(weights [][]float64) float64 {
	w := evenOut(flatten(weights))
	if w == nil {
		return math.NaN()
	}
	return kish(w)
}

// QuantilesWeighted returns quantiles of draws that count by weights: the mean of the
// weighted quantile function over a window as wide as one of WeightESS draws, which is
// type 7 where weights are equal (Akinshin 2023, "Weighted quantile estimators", section
// 4). Each is NaN as in SummarizeWeighted, and where a draw is not finite.
func QuantilesWeighted(chains, weights [][]float64, p ...float64) []float64 {
	x, w := flatten(chains), evenOut(flatten(weights))
	out := make([]float64, len(p))
	if w == nil || !finite(x) {
		for k := range out {
			out[k] = math.NaN()
		}
		return out
	}
	order := sortedBy(x)
	n, total := kish(w), float64(len(w))
	for k, p := range p {
		lo := p * (n - 1) / n // the window is [lo, lo + 1/n] of all weight
		share := func(below float64) float64 { return min(max((below/total-lo)*n, 0), 1) }
		below, base, sum, found := 0.0, 0.0, 0.0, false
		for _, i := range order {
			if w[i] == 0 {
				continue
			}
			part := share(below+w[i]) - share(below)
			below += w[i]
			if part < 1e-12 { // rounding, which must not pull a tied value below itself
				continue
			}
			if !found {
				base, found = x[i], true
			}
			sum += part * (x[i] - base)
		}
		out[k] = base + sum
	}
	return out
}

// evenOut returns weights scaled to a mean of one; nil where they cannot be.
func evenOut(w []float64) []float64 {
	most := 0.0
	for _, v := range w {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil
		}
		most = max(most, v)
	}
	if most == 0 {
		return nil
	}
	out, sum := make([]float64, len(w)), 0.0
	for k, v := range w {
		out[k] = v / most // first, since the sum may not be finite
		sum += out[k]
	}
	for k := range out {
		out[k] *= float64(len(w)) / sum
	}
	return out
}

func kish(w []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range w {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / squares
}

// weightedMean and weightedVariance take weights with a mean of one; the variance has
// the factor n/(n-1) of equal ones.
func weightedMean(x, w []float64) float64 {
	sum := 0.0
	for k, v := range x {
		sum += w[k] * v
	}
	return sum / float64(len(x))
}

func weightedVariance(x, w []float64) float64 {
	m, sum := weightedMean(x, w), 0.0
	for k, v := range x {
		sum += w[k] * (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}

// influence is w·(f - f̂), the series whose mean's error is that of f̂.
func influence(chains, weights [][]float64) [][]float64 {
	x, w := flatten(chains), flatten(weights)
	m := weightedMean(x, w)
	for k := range x {
		x[k] = w[k] * (x[k] - m)
	}
	return rows(x, chains)
}

// squaredError is the square of the standard error of the weighted mean of whole chains.
func squaredError(chains, weights [][]float64) float64 {
	z := influence(chains, weights)
	if !varies(z) {
		return math.NaN()
	}
	return variance(flatten(z)) / effectiveSize(split(z))
}

// weightedSize is effectiveSize for weighted draws of split chains.
func weightedSize(chains, weights [][]float64) float64 {
	if !varies(chains) {
		return kish(flatten(weights))
	}
	z := influence(chains, weights)
	if !varies(z) {
		return math.NaN()
	}
	return weightedVariance(flatten(chains), flatten(weights)) / (variance(flatten(z)) / effectiveSize(z))
}

// sortedBy returns the places of values in increasing order of them.
func sortedBy(x []float64) []int {
	order := make([]int, len(x))
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	return order
}

// weightedScores is normalScores with the weight below a draw for its rank.
func weightedScores(chains, weights [][]float64) [][]float64 {
	x, w := flatten(chains), flatten(weights)
	order, scores, below := sortedBy(x), make([]float64, len(x)), 0.0
	for lo := 0; lo < len(x); {
		hi, tied := lo, 0.0
		for ; hi < len(x) && x[order[hi]] == x[order[lo]]; hi++ {
			tied += w[order[hi]]
		}
		z := normalQuantile((below + (tied+1)/2 - 0.375) / (float64(len(x)) + 0.25))
		for _, k := range order[lo:hi] {
			scores[k] = z
		}
		below += tied
		lo = hi
	}
	return rows(scores, chains)
}
