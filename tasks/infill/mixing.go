package infill

import (
	"math"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
)

// trace records what mixing is judged by, over the draws of a run. Its memory grows
// with the run, by 8 bytes a chain and 4 a blank for each draw.
type trace struct {
	u     [][]float64 // [chain][draw]
	w     [][]float64 // weights, [chain][draw]; nil where draws count the same
	codes [][]int32   // [chain][draw, site]
	sites int
	// stages counts what the stages of a sampler with a draft reject.
	stages samplers.Stages
}

func (t *trace) Observe(s *samplers.State, info *samplers.Info) error {
	if !info.Keep {
		return nil
	}
	if t.u == nil {
		t.u, t.codes, t.sites = make([][]float64, s.Chains()), make([][]int32, s.Chains()), s.X.Space.Sites
	}
	for c, u := range s.U {
		t.u[c] = append(t.u[c], u)
		t.codes[c] = append(t.codes[c], s.X.Chain(c)...)
	}
	weights := s.Var(samplers.WeightVar)
	if weights != nil && t.w == nil {
		t.w = make([][]float64, s.Chains())
	}
	for c, w := range weights {
		t.w[c] = append(t.w[c], w)
	}
	return t.stages.Observe(s, info)
}

// density returns R-hat and the bulk effective sample size of the log-density.
func (t *trace) density() (rhat, ess diag.Number) { return t.judge(t.u) }

// judge returns R-hat and the bulk effective sample size of a number, those of its
// weighted mean where draws are weighted.
func (t *trace) judge(x [][]float64) (rhat, ess diag.Number) {
	if t.w == nil {
		rhat, ess = diag.Number(diag.RHat(x)), diag.Number(diag.ESSBulk(x))
	} else {
		s := diag.SummarizeWeighted(x, t.w)
		rhat, ess = diag.Number(s.RHat), diag.Number(s.ESSBulk)
	}
	if rhat > absurdRHat {
		return diag.NA, diag.NA
	}
	return rhat, ess
}

// absurdRHat is an R-hat that only chains with next to no variance of their own have; it
// says no more than that.
const absurdRHat = 100

// blanks returns the largest R-hat and the smallest bulk effective sample size of the
// blanks, each judged by the indicator of the word that stands there most often. A
// blank whose word is the same in all draws of all chains is passed over; one whose
// word differs between chains that never change it makes both NaN.
func (t *trace) blanks() (rhat, ess diag.Number) {
	rhat, ess = diag.NA, diag.NA
	for i := range t.sites {
		x, constant := t.indicator(i)
		if constant {
			continue
		}
		r, e := t.judge(x)
		if !r.Finite() || !e.Finite() {
			return diag.NA, diag.NA
		}
		if !rhat.Finite() || r > rhat {
			rhat = r
		}
		if !ess.Finite() || e < ess {
			ess = e
		}
	}
	return rhat, ess
}

// indicator is 1 where a blank has its most frequent word, the one with the lowest id
// of several. It is constant where there is no other word.
func (t *trace) indicator(site int) (x [][]float64, constant bool) {
	count := map[int32]int{}
	for _, codes := range t.codes {
		for k := site; k < len(codes); k += t.sites {
			count[codes[k]]++
		}
	}
	top, most := int32(math.MaxInt32), 0
	for v, n := range count {
		if n > most || n == most && v < top {
			top, most = v, n
		}
	}
	x = make([][]float64, len(t.codes))
	for c, codes := range t.codes {
		for k := site; k < len(codes); k += t.sites {
			is := 0.0
			if codes[k] == top {
				is = 1
			}
			x[c] = append(x[c], is)
		}
	}
	return x, len(count) < 2
}
