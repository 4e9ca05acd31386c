package samplers

import (
	"math"
	"strconv"
)

// TargetAcceptance is the acceptance probability to which step sizes are
// adapted: the optimum for locally balanced proposals as the dimension grows
// (Sun, Dai and Schuurmans 2022), the same as for the Langevin algorithm.
const TargetAcceptance = 0.574

// Bounds of an adapted step size, relative to the one it started from. At the
// upper one the penalty no longer matters, at the lower one nothing moves; a
// chain whose acceptance cannot reach the target stops there.
const adaptRange = 1e4

// Adaptation is how far one chain's step size is adapted, by stochastic
// approximation on log α (Robbins and Monro 1951) with averaged iterates
// (Polyak and Juditsky 1992):
//
//	log α ← log α + 2·t^-0.6·(a_t - target),   t = 1, 2, ...
//	mean  ← mean  + t^-0.75·(log α - mean)
//
// where a_t is the acceptance probability of step t. Only the chain's own steps
// enter, so chains stay independent. Warm-up draws use log α; when it ends, α is
// frozen at exp(mean). The zero value has seen no step.
type Adaptation struct {
	// Steps is the number of steps seen.
	Steps int64 `json:"steps"`
	// Mean is the weighted mean of log α.
	Mean float64 `json:"mean"`
}

// update returns α after a step with acceptance probability a at step size
// alpha, having started from start.
func (d *Adaptation) update(alpha, a, start, target float64) float64 {
	d.Steps++
	t := float64(d.Steps)
	x := math.Log(alpha) + 2*math.Pow(t, -0.6)*(a-target)
	middle, reach := math.Log(start), math.Log(adaptRange)
	x = min(max(x, middle-reach), middle+reach)
	d.Mean += math.Pow(t, -0.75) * (x - d.Mean)
	return math.Exp(x)
}

// freeze returns the step size to keep after warm-up.
func (d *Adaptation) freeze(alpha float64) float64 {
	if d.Steps == 0 {
		return alpha
	}
	return math.Exp(d.Mean)
}

// adaptStep adapts every chain's step size after a warm-up step with acceptance
// probabilities accept, [chain], and freezes it after the last one.
func adaptStep(s *State, accept []float64, start, target float64, last bool) {
	for c := range s.Adapt {
		s.StepSize[c] = s.Adapt[c].update(s.StepSize[c], accept[c], start, target)
		if last {
			s.StepSize[c] = s.Adapt[c].freeze(s.StepSize[c])
		}
	}
}

// mean returns the mean of x, which is not empty.
func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// checkStepSize returns an *OptionError unless alpha is positive and finite.
func checkStepSize(sampler string, alpha float64) error {
	if alpha > 0 && !math.IsInf(alpha, 1) {
		return nil
	}
	return &OptionError{sampler, "step-size", strconv.FormatFloat(alpha, 'g', -1, 64), "must be positive and finite"}
}
