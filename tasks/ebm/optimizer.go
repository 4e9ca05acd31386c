package ebm

import (
	"math"
	"slices"
)

// Optimizer says how weights follow gradients. Zero fields mean the papers' defaults.
type Optimizer struct {
	// LearningRate is the step of Adam; 0 means 1e-4.
	LearningRate float64
	// Warmup is the number of updates over which the learning rate rises linearly.
	Warmup int
	// HalfLife is the number of updates in which the learning rate halves, from the first
	// update on; 0 keeps the rate.
	HalfLife int `json:",omitempty"`
	// NoMomentum sets Adam's β₁ to 0 instead of 0.9. Momentum makes U of data and samples
	// oscillate where chains follow the model (Du and Mordatch 2019).
	NoMomentum bool `json:",omitempty"`
	// WeightDecay is AdamW's decoupled decay (Loshchilov and Hutter 2019): every update
	// multiplies weights by 1 - LearningRate·WeightDecay.
	WeightDecay float64
	// L1 is the penalty on the sum of absolute weights.
	L1 float64
	// Clip bounds the norm of the whole gradient; 0 is no bound.
	Clip float64
	// EMA is the decay of the moving average of weights that a finished model has; 0
	// keeps no average.
	EMA float64
}

// Adam's constants (Kingma and Ba 2015).
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// moments is the state of Adam for all weights, [weight][number].
type moments struct {
	M, V    [][]float32
	Average [][]float32 // of the weights, nil without EMA
	Updates int
}

// rate is the learning rate of an update; the first is number 1.
func (s *Optimizer) rate(update int) float64 {
	rate := s.LearningRate * math.Min(1, float64(update)/math.Max(1, float64(s.Warmup)))
	if s.HalfLife > 0 {
		rate *= math.Exp2(-float64(update) / float64(s.HalfLife))
	}
	return rate
}

func newMoments(w *Weights, ema bool) *moments {
	o := &moments{M: w.zeros(), V: w.zeros()}
	if ema {
		for k := range w.Names {
			o.Average = append(o.Average, slices.Clone(w.Data(k)))
		}
	}
	return o
}

// ascend makes one update of w along the gradient g of the objective, and returns the
// norm of g before clipping.
func (o *moments) ascend(s *Optimizer, w *Weights, g [][]float32) float64 {
	norm := 0.0
	for _, part := range g {
		for _, v := range part {
			norm += float64(v) * float64(v)
		}
	}
	norm = math.Sqrt(norm)
	scale := 1.0
	if s.Clip > 0 && norm > s.Clip {
		scale = s.Clip / norm
	}
	o.Updates++
	rate := s.rate(o.Updates)
	beta1 := beta1
	if s.NoMomentum {
		beta1 = 0
	}
	c1, c2 := 1-math.Pow(beta1, float64(o.Updates)), 1-math.Pow(beta2, float64(o.Updates))
	decay := 1 - rate*s.WeightDecay
	for k, part := range g {
		x, m, v := w.Data(k), o.M[k], o.V[k]
		for i, raw := range part {
			d := scale * float64(raw)
			if x[i] != 0 {
				d -= s.L1 * math.Copysign(1, float64(x[i]))
			}
			m1 := beta1*float64(m[i]) + (1-beta1)*d
			v1 := beta2*float64(v[i]) + (1-beta2)*d*d
			m[i], v[i] = float32(m1), float32(v1)
			x[i] = float32(decay*float64(x[i]) + rate*(m1/c1)/(math.Sqrt(v1/c2)+epsilon))
		}
		if o.Average != nil {
			a := o.Average[k]
			for i, xi := range x {
				a[i] += float32((1 - s.EMA)) * (xi - a[i])
			}
		}
	}
	return norm
}
