package diag

import (
	"math"
	"slices"
)

// split divides every chain into halves, without the middle draw if the number is odd.
func split(chains [][]float64) [][]float64 {
	var first, second [][]float64
	for _, x := range chains {
		half := len(x) / 2
		first = append(first, x[:half])
		second = append(second, x[len(x)-half:])
	}
	return append(first, second...)
}

func flatten(chains [][]float64) []float64 { return slices.Concat(chains...) }

// rows cuts values into chains shaped like like.
func rows(values []float64, like [][]float64) [][]float64 {
	out := make([][]float64, len(like))
	for c, x := range like {
		out[c], values = values[:len(x)], values[len(x):]
	}
	return out
}

// fold replaces draws by their distance from the overall median.
func fold(chains [][]float64) [][]float64 {
	all := flatten(chains)
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	median := sorted[n/2]
	if n%2 == 0 {
		median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	for k, v := range all {
		all[k] = math.Abs(v - median)
	}
	return rows(all, chains)
}

// normalScores replaces draws by the normal quantiles of their ranks among all draws, with mean ranks
// for ties: Φ⁻¹((r - 3/8)/(n + 1/4)) (eq. 14).
func normalScores(chains [][]float64) [][]float64 {
	all := flatten(chains)
	n := len(all)
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case all[a] < all[b]:
			return -1
		case all[a] > all[b]:
			return 1
		}
		return 0
	})
	scores := make([]float64, n)
	for lo := 0; lo < n; {
		hi := lo + 1
		for hi < n && all[order[hi]] == all[order[lo]] {
			hi++
		}
		rank := float64(lo+hi+1) / 2 // mean of lo+1 .. hi
		z := normalQuantile((rank - 0.375) / (float64(n) + 0.25))
		for _, k := range order[lo:hi] {
			scores[k] = z
		}
		lo = hi
	}
	return rows(scores, chains)
}

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// quantile returns the p-quantile by R's type 7, SciPy's mquantiles with α = β = 1. As there, products
// are rounded before they are added: with ties, a fused multiply-add could end on the other side of the
// tied value.
func quantile(all []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := float64(len(sorted))
	at := float64(n*p) + (1 - p)
	k := math.Floor(min(max(at, 1), n-1))
	gamma := min(max(at-k, 0), 1)
	return float64((1-gamma)*sorted[int(k)-1]) + float64(gamma*sorted[int(k)])
}
