package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/samplers/diag"
)

// site is a site of a run with first estimates of its mixing.
type site struct {
	index     int
	indicator bool  // in a categorical space: use the indicator of the mode
	mode      int32 // the most frequent value
	constant  bool  // equal in all draws
	number    func(v int32) float64
	rhat      float64
	ess       float64
}

func (s site) name() string {
	if s.indicator {
		return fmt.Sprintf("x[%d]=%d", s.index, s.mode)
	}
	return fmt.Sprintf("x[%d]", s.index)
}

// value returns the value used for diagnostics.
func (s site) value(x []int32) float64 {
	if !s.indicator {
		return s.number(x[s.index])
	}
	if x[s.index] == s.mode {
		return 1
	}
	return 0
}

// choose returns the sites to list: all of them, or half for their R-hat and half for their effective
// sample size, without constant ones.
func choose(sites []site, most int) []site {
	if most < 0 || len(sites) <= most {
		return sites
	}
	moving := slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return s.constant })
	if len(moving) <= most {
		return moving
	}
	slices.SortStableFunc(moving, func(a, b site) int { return cmp.Compare(b.rhat, a.rhat) })
	head, rest := moving[:(most+1)/2], moving[(most+1)/2:]
	slices.SortStableFunc(rest, func(a, b site) int { return cmp.Compare(a.ess, b.ess) })
	return slices.Concat(head, rest[:most-len(head)])
}

// screen estimates the mixing of every site, in as many passes over the draws as the memory limit
// requires. weights, [chain][draw], define the modes; nil means equal weights.
func screen(r *Reader, weights [][]float64, bytes int) ([]site, error) {
	lo, hi := r.header.Space.Bounds()
	sites := make([]site, r.header.Space.Sites)
	indicator := r.header.Space.Kind == "categorical"
	for i := range sites {
		sites[i] = site{index: i, indicator: indicator, number: r.header.Space.Number}
	}
	if r.header.Space.real() {
		each := max(1, bytes/(8*max(r.Chains()*r.Draws(Sampling), 1)))
		for at := 0; at < len(sites); at += each {
			if err := screenReal(r, sites[at:min(at+each, len(sites))]); err != nil {
				return nil, err
			}
		}
		return sites, nil
	}
	values := hi - lo + 1
	if indicator {
		size, find := 4, findModes[int32]
		if weights != nil {
			size, find = 8, findModes[float64]
		}
		each := max(1, bytes/(size*values))
		for at := 0; at < len(sites); at += each {
			if err := find(r, weights, sites[at:min(at+each, len(sites))], values); err != nil {
				return nil, err
			}
		}
		lo, values = 0, 2
	}
	each := max(1, bytes/(r.Chains()*(2*4*values+batchBytes)))
	for at := 0; at < len(sites); at += each {
		if err := look(r, sites[at:min(at+each, len(sites))], lo, values); err != nil {
			return nil, err
		}
	}
	return sites, nil
}

// screenReal sets constant, rhat and ess of sites with real values, which cannot be counted.
func screenReal(r *Reader, sites []site) error {
	columns, err := r.columns(sites)
	for k := range columns {
		s := diag.Summarize(columns[k])
		sites[k].constant, sites[k].rhat, sites[k].ess = s.SD == 0, s.RHat, s.ESSBulk
	}
	return err
}

// findModes finds the most frequent value of each site, or the value with most weight; ties go to the
// lowest. T is float64 with weights.
func findModes[T int32 | float64](r *Reader, weights [][]float64, sites []site, values int) error {
	counts, first := make([]T, len(sites)*values), sites[0].index
	for c := range r.Chains() {
		draw, one := 0, T(1)
		for x, err := range r.States(Sampling, c) {
			if err != nil {
				return err
			}
			if weights != nil {
				one = T(weights[c][draw])
			}
			for k := range sites {
				counts[k*values+int(x[first+k])] += one
			}
			draw++
		}
	}
	for k := range sites {
		row := counts[k*values : (k+1)*values]
		for v, n := range row {
			if n > row[sites[k].mode] {
				sites[k].mode = int32(v)
			}
		}
	}
	return nil
}

// batch accumulates means of batches of draws of a chain.
type batch struct{ sum, means, squares float64 }

const batchBytes = 24

// look sets constant, rhat and ess. R-hat depends only on the value counts of each half of a chain. The
// effective sample size is estimated from the variance of means over batches of √n draws.
func look(r *Reader, sites []site, lo, values int) error {
	n, chains := r.Draws(Sampling), r.Chains()
	half, length := n/2, max(1, int(math.Sqrt(float64(n))))
	counts := make([]int32, len(sites)*2*chains*values) // [site, half, value]
	batches := make([]batch, len(sites)*chains)
	first := make([]int, len(sites))
	for k := range sites {
		sites[k].constant = true
	}
	for c := range chains {
		draw := 0
		for x, err := range r.States(Sampling, c) {
			if err != nil {
				return err
			}
			part := -1 // the middle draw of an odd number is in neither half
			if draw < half {
				part = c
			} else if draw >= n-half {
				part = chains + c
			}
			for k := range sites {
				v := int(sites[k].value(x)) - lo
				if c == 0 && draw == 0 {
					first[k] = v
				} else if v != first[k] {
					sites[k].constant = false
				}
				if part >= 0 {
					counts[(k*2*chains+part)*values+v]++
				}
				b := &batches[k*chains+c]
				b.sum += float64(v)
				if (draw+1)%length == 0 {
					m := b.sum / float64(length)
					b.means, b.squares, b.sum = b.means+m, b.squares+m*m, 0
				}
			}
			draw++
		}
	}
	for k := range sites {
		h := histogram{counts[k*2*chains*values : (k+1)*2*chains*values], values}
		sites[k].rhat = h.rhat()
		sites[k].ess = h.variance() * float64(n*chains) / batchVariance(batches[k*chains:(k+1)*chains], n/length, length)
	}
	return nil
}

// batchVariance estimates the limit of n·Var(mean of n draws): the variance times the autocorrelation
// time.
func batchVariance(chains []batch, count, length int) float64 {
	total := float64(count * len(chains))
	sum, squares := 0.0, 0.0
	for _, b := range chains {
		sum, squares = sum+b.means, squares+b.squares
	}
	m := sum / total
	return float64(length) * (squares - total*m*m) / (total - 1)
}
