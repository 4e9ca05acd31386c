package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

// ordinalRow holds the weights exp(½β·d[i,v] - (v-x_i)²/(2α)) of one site of an
// ordinal space, where the penalty differs from value to value.
type ordinalRow struct {
	w     []float64 // [value], times exp(-scale); 0 at the current value
	sum   float64   // Σw
	scale float64

	alpha   float64   // of penalty
	penalty []float64 // exp(-k²/(2α)) by distance k
}

// weigh fills the row for site r = (chain, site) of l and returns
// log Σ_{v≠cur} exp(½β·d[i,v] - (v-cur)²/(2α)), -Inf where that underflows.
func (o *ordinalRow) weigh(l *Local, sp *energies.Space, r int, cur int32, alpha float64) float64 {
	o.w = resize(o.w, sp.Values)
	if l.Tilt != nil {
		o.weighTilt(l.Tilt[r*sp.Values:(r+1)*sp.Values], cur, alpha)
	} else {
		o.weighGrad(l.Grad[r*sp.Values:(r+1)*sp.Values], sp.AllowedAt(r%sp.Sites), cur, alpha, l.half)
	}
	o.sum = 0
	for _, w := range o.w {
		o.sum += w
	}
	return math.Log(o.sum) + o.scale
}

func (o *ordinalRow) weighTilt(p []float32, cur int32, alpha float64) {
	if o.alpha != alpha || len(o.penalty) != len(p) {
		o.alpha, o.penalty = alpha, resize(o.penalty, len(p))
		for k := range o.penalty {
			o.penalty[k] = math.Exp(-float64(k) * float64(k) / (2 * alpha))
		}
	}
	for v := range o.w {
		k := v - int(cur)
		if k < 0 {
			k = -k
		}
		o.w[v] = float64(p[v]) * o.penalty[k]
	}
	o.w[cur] = 0
	o.scale = -math.Log(float64(max(p[cur], smallestTilt)))
}

func (o *ordinalRow) weighGrad(g []float32, list []int32, cur int32, alpha, half float64) {
	for v := range o.w {
		o.w[v] = math.Inf(-1)
	}
	o.scale = math.Inf(-1)
	each(len(g), list, func(v int32) {
		if v != cur {
			k := float64(v) - float64(cur)
			o.w[v] = half*(float64(g[v])-float64(g[cur])) - k*k/(2*alpha)
			o.scale = max(o.scale, o.w[v])
		}
	})
	if math.IsInf(o.scale, -1) {
		o.scale = 0
	}
	for v, t := range o.w {
		o.w[v] = math.Exp(t - o.scale)
	}
}

// logWeight is log of the weight of v ≠ cur, -Inf where it underflowed.
func (o *ordinalRow) logWeight(v int32) float64 { return math.Log(o.w[v]) + o.scale }

// pick returns the value at which the cumulative share of the weights passes u.
func (o *ordinalRow) pick(u float64) int32 {
	target, last := u*o.sum, 0
	for v, w := range o.w {
		if w == 0 {
			continue
		}
		last = v
		if target -= w; target < 0 {
			break
		}
	}
	return int32(last)
}
