package store

import (
	"cmp"
	"math"
	"slices"
)

// histogram counts values in halves of chains, [half, value].
type histogram struct {
	counts []int32
	values int
}

// pooled returns the counts over all halves.
func (h histogram) pooled() []int32 {
	all := make([]int32, h.values)
	for k, n := range h.counts {
		all[k%h.values] += n
	}
	return all
}

func (h histogram) variance() float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for v, c := range h.pooled() {
		w, x := float64(c), float64(v)
		n, sum, squares = n+w, sum+w*x, squares+w*x*x
	}
	return (squares - sum*sum/n) / (n - 1)
}

// rhat is diag.RHat for counted draws. It is infinite if chains are constant but differ.
func (h histogram) rhat() float64 {
	all := h.pooled()
	rank := make([]float64, h.values)
	for v := range rank {
		rank[v] = float64(v)
	}
	bulk := h.potentialScale(scores(all, rank))
	middle := median(all)
	for v := range rank {
		rank[v] = math.Abs(float64(v) - middle)
	}
	if spread := h.potentialScale(scores(all, rank)); spread > bulk {
		return spread
	}
	return bulk
}

// scores returns the normal score of each value; key orders the values.
func scores(counts []int32, key []float64) []float64 {
	order := make([]int, len(key))
	total := 0.0
	for v := range order {
		order[v] = v
		total += float64(counts[v])
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
	z, below := make([]float64, len(key)), 0.0
	for lo := 0; lo < len(order); {
		hi, tied := lo, 0.0
		for ; hi < len(order) && key[order[hi]] == key[order[lo]]; hi++ {
			tied += float64(counts[order[hi]])
		}
		score := math.Sqrt2 * math.Erfinv(2*((below+(tied+1)/2)-0.375)/(total+0.25)-1)
		for _, v := range order[lo:hi] {
			z[v] = score
		}
		below += tied
		lo = hi
	}
	return z
}

// median returns the median of counted values.
func median(counts []int32) float64 {
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	at := func(k int) float64 {
		for v, n := range counts {
			if k -= int(n); k < 0 {
				return float64(v)
			}
		}
		return float64(len(counts) - 1)
	}
	return (at((total-1)/2) + at(total/2)) / 2
}

// potentialScale returns R-hat of the scores over the halves.
func (h histogram) potentialScale(z []float64) float64 {
	halves := len(h.counts) / h.values
	means, within, n := make([]float64, halves), 0.0, 0.0
	for k := range halves {
		row := h.counts[k*h.values : (k+1)*h.values]
		sum, squares, kinds := 0.0, 0.0, 0
		n = 0
		for v, c := range row {
			w := float64(c)
			if n, sum = n+w, sum+w*z[v]; c > 0 {
				kinds++
			}
		}
		means[k] = sum / n
		for v, c := range row {
			d := z[v] - means[k]
			if kinds > 1 { // rounding of the mean of equal scores
				squares += float64(c) * d * d
			}
		}
		within += squares / (n - 1)
	}
	within /= float64(halves)
	m, between := 0.0, 0.0
	for _, x := range means {
		m += x / float64(halves)
	}
	for _, x := range means {
		between += (x - m) * (x - m) / float64(halves-1)
	}
	return math.Sqrt((n*between/within + n - 1) / n)
}
