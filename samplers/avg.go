package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:  "avg",
		Doc:   "auxiliary variable gradient: all sites move given a Gaussian copy of the state",
		Paper: "Rhodes, Gutmann 2022 (arXiv:2208.00040); Titsias, Papaspiliopoulos 2018",
		Tunes: "step-size",
		Needs: energies.Gradient,
	}, newAVG)
}

type avgOptions struct {
	// StepSize is the standard deviation δ of the auxiliary variable; 0 adapts it in warm-up
	// to an acceptance of 0.574, from half the distance of neighbouring values.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"standard deviation of the auxiliary variable"`
}

// copies is the proposal of newAVG.
type copies struct {
	noise []float64 // of each chain's copy, divided by δ, [chain, number]
}

// newAVG returns the auxiliary variable gradient sampler for e, which must have a gradient (Rhodes and Gutmann 2022).
// With s(x) the numbers, or one-hot codes, that x stands for, a step draws a copy z ~ N(s(x), δ²) and
//
//	x' ~ Π_i exp(β·d[i,x'_i]) · N(z; s(x'), δ²) / normaliser,
//
// accepted with probability min(1, π(x')N(z; s(x'), δ²)Q(x|x',z) / (π(x)N(z; s(x), δ²)Q(x'|x,z))). Where U is linear
// nothing is rejected. Errors are *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func newAVG(e energies.Energy, o avgOptions) (*Metropolis, error) {
	eval, err := NewInformed("avg", e, Sqrt, true)
	if err != nil {
		return nil, err
	}
	tuner := &Tuner{Var: StepSizeVar, Start: o.StepSize}
	if o.StepSize == 0 {
		tuner.Start = math.Sqrt(e.Space().SquaredDistance(0, 1)) / 2
	}
	if err := checkPositive("avg", "step-size", tuner.Start); err != nil {
		return nil, err
	}
	p := &copies{}
	k := &Metropolis{Evaluator: eval, Proposal: p, Prepare: func(s *State) { p.noise = resize(p.noise, s.Chains()*numbers(s.X.Space)) }}
	k.adapt(tuner, o.StepSize == 0)
	return k, nil
}

// numbers is the length of s(x).
func numbers(sp *energies.Space) int {
	if sp.Kind == energies.Categorical {
		return sp.Sites * sp.Values
	}
	return sp.Sites
}

func (p *copies) Draw(w *Worker, s *State, c int, next []int32) float64 {
	noise := p.of(s, c)
	for j := range noise {
		noise[j] = w.Normal()
	}
	row, logq := w.Row(s.X.Space.Values), 0.0
	for i := range next {
		weighCopy(row, &s.Point, c, i, noise, s.Var(StepSizeVar)[c])
		total := logSumExp(row)
		next[i] = pickLog(row, total, w.Float64())
		logq += row[next[i]] - total
	}
	return logq
}

// of returns the noise of chain c.
func (p *copies) of(s *State, c int) []float64 {
	n := numbers(s.X.Space)
	return p.noise[c*n : (c+1)*n]
}

// weighCopy fills row with the log-weights of site i at p, relative to that of its value, given a copy with noise.
func weighCopy(row []float64, p *Point, chain, i int, noise []float64, delta float64) {
	sp, cur, precision := p.X.Space, p.X.Chain(chain)[i], 1/(delta*delta)
	p.LogRatios(row, chain, i)
	for v := range row {
		switch {
		case sp.Kind != energies.Categorical:
			d := float64(sp.Number(int32(v)) - sp.Number(cur))
			row[v] += noise[i]/delta*d - precision/2*d*d
		case int32(v) != cur:
			row[v] += (noise[i*sp.Values+v]-noise[i*sp.Values+int(cur)])/delta - precision
		}
	}
}

// LogReverse implements Proposal: log Q(x|x',z) + log N(z; s(x')) - log N(z; s(x)).
func (p *copies) LogReverse(w *Worker, s *State, c int, next *Point) float64 {
	noise, delta, logq := p.of(s, c), s.Var(StepSizeVar)[c], 0.0
	move := func(j int, by float64) { // the noise of the same copy about s(x')
		before := noise[j]
		noise[j] -= by / delta
		logq += (before*before - noise[j]*noise[j]) / 2
	}
	sp, y := s.X.Space, next.X.Chain(c)
	for i, v := range s.X.Chain(c) {
		switch {
		case v == y[i]:
		case sp.Kind == energies.Categorical:
			move(i*sp.Values+int(v), -1)
			move(i*sp.Values+int(y[i]), 1)
		default:
			move(i, float64(sp.Number(y[i])-sp.Number(v)))
		}
	}
	row := w.Row(sp.Values)
	for i, v := range s.X.Chain(c) {
		weighCopy(row, next, c, i, noise, delta)
		logq += row[v] - logSumExp(row)
	}
	return logq
}
