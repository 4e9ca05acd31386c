package diag

import (
	"cmp"
	"slices"
)

// RankCounts returns the rank histogram of each chain: the ranks of its draws among the draws of all
// chains, counted in bins of equal width, [chain][bin] (Vehtari et al. 2021, section 4.2). The
// histograms are flat if the chains have mixed. Tied draws get their mean rank. Chains may have
// different lengths.
func RankCounts(chains [][]float64, bins int) [][]int {
	type draw struct {
		x     float64
		chain int
	}
	var all []draw
	for c, x := range chains {
		for _, v := range x {
			all = append(all, draw{v, c})
		}
	}
	slices.SortFunc(all, func(a, b draw) int { return cmp.Compare(a.x, b.x) })
	counts := make([][]int, len(chains))
	for c := range counts {
		counts[c] = make([]int, bins)
	}
	for lo := 0; lo < len(all); {
		hi := lo
		for hi < len(all) && all[hi].x == all[lo].x {
			hi++
		}
		if hi == lo { // NaN equals nothing
			hi++
		}
		middle := float64(lo+hi-1)/2 + 0.5 // ranks from 0, at the centre of their cell
		bin := min(int(middle*float64(bins)/float64(len(all))), bins-1)
		for _, d := range all[lo:hi] {
			counts[d.chain][bin]++
		}
		lo = hi
	}
	return counts
}
