package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:  "acs",
		Doc:   "cyclical DMALA: bold steps with a globally balanced proposal alternate with small locally balanced ones",
		Paper: "Pynadath, Bhattacharya, Hariharan, Zhang 2024 (arXiv:2402.17699)",
		Tunes: "step-size",
		Needs: energies.Gradient,
	}, newACS)
}

type acsOptions struct {
	// StepSize is the middle α of a cycle; 0 adapts it in warm-up to an acceptance of
	// 0.574 over a cycle, from that of DMALA.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"middle step size α of a cycle"`
	// Cycle is the number of steps in a cycle; 0 means 10.
	Cycle int `flag:"cycle" default:"10" doc:"steps in a cycle"`
	// Spread is the largest step size of a cycle divided by the smallest; 0 means 16.
	Spread float64 `flag:"spread" default:"16" doc:"largest step size of a cycle divided by the smallest"`
	// Peak is the balancing exponent at the largest step size, from ½ to 1; 0 means 0.8.
	Peak float64 `flag:"peak" default:"0.8" doc:"balancing exponent at the largest step size, from 0.5 to 1"`
}

// newACS returns DMALA on a cyclical schedule (Pynadath et al. 2024) for e, which must have a
// gradient. Step k = 0..s-1 of a cycle proposes
//
//	q_i(v|x) ∝ exp(b_k·β·d[i,v] - D²(v,x_i)/(2α_k))
//
// with log α_k falling from log α + ½·log(spread) to log α - ½·log(spread) by a cosine, and
// the balancing exponent b_k falling with log α_k from the peak to ½: bold proposals are best
// near globally balanced (b = 1), small ones locally balanced. Every step is corrected, so
// any schedule is exact. Left out: tuning of the shape of the cycle. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func newACS(e energies.Energy, o acsOptions) (*Metropolis, error) {
	bad := func(option string, value float64, reason string) (*Metropolis, error) {
		return nil, badOption("acs", option, value, reason)
	}
	eval, err := NewInformed("acs", e, Sqrt, true)
	if err != nil {
		return nil, err
	}
	c := cycle{o.Cycle, o.Spread, o.Peak}
	if c.steps == 0 {
		c.steps = 10
	}
	if c.spread == 0 {
		c.spread = 16
	}
	if c.peak == 0 {
		c.peak = 0.8
	}
	tuner := &Tuner{Var: StepSizeVar, Start: o.StepSize}
	if o.StepSize == 0 {
		tuner.Start = 0.2 * e.Space().SquaredDistance(0, 1)
	}
	switch {
	case c.steps < 1:
		return bad("cycle", float64(c.steps), "must be positive")
	case !(c.spread >= 1) || math.IsInf(c.spread, 1):
		return bad("spread", c.spread, "must be at least 1")
	case !(c.peak >= 0.5 && c.peak <= 1):
		return bad("peak", c.peak, "must be from 0.5 to 1")
	}
	if err := checkPositive("acs", "step-size", tuner.Start); err != nil {
		return nil, err
	}
	k := &Metropolis{Evaluator: eval, Proposal: product{c.weigh}}
	k.adapt(tuner, o.StepSize == 0)
	return k, nil
}

type cycle struct {
	steps        int
	spread, peak float64
}

// at returns the factor of α and the balancing exponent of a step.
func (c cycle) at(step int64) (factor, exponent float64) {
	height := (1 + math.Cos(math.Pi*float64(step%int64(c.steps))/float64(max(c.steps-1, 1)))) / 2 // from 1 to 0
	return math.Pow(c.spread, height-0.5), 0.5 + (c.peak-0.5)*height
}

func (c cycle) weigh(row []float64, s *State, p *Point, chain, i int) {
	factor, exponent := c.at(s.Step)
	alpha, cur := factor*s.Var(StepSizeVar)[chain], p.X.Chain(chain)[i]
	p.LogRatios(row, chain, i)
	for v := range row {
		row[v] = exponent*row[v] - p.X.Space.SquaredDistance(int32(v), cur)/(2*alpha)
	}
}
