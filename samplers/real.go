package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Variables of samplers of real spaces: the standard deviation of each site, by which they scale its moves, and the
// mean, both as warm-up has estimated them.
const (
	scaleVar     = "scale"
	scaleMeanVar = "scale_mean"
)

// Bounds of a scale.
const (
	leastScale = 1e-8
	mostScale  = 1e8
)

// scaleSpecs declares the variables of scales.
func scaleSpecs(sp *energies.Space) []VarSpec {
	return []VarSpec{{Name: scaleVar, Shape: []int{sp.Sites}, Start: 1}, {Name: scaleMeanVar, Shape: []int{sp.Sites}}}
}

// tuneScales adapts the scales of every chain after step t of warm-up, by the recursions of Andrieu and Thoms (2008,
// eq. 6) for mean and variance of each site,
//
//	m ← m + γ(x - m),   s² ← s² + γ((x - m)² - s²),   γ = (t+1)^-0.6,
//
// with the old m in both. Only the chain's own states enter, and after warm-up scales stay as they are.
func tuneScales(s *State) {
	gain := math.Pow(float64(s.Step)+1, -0.6)
	scales, means := s.Var(scaleVar), s.Var(scaleMeanVar)
	for k, code := range s.X.Codes {
		rest := s.X.Space.Value(code) - means[k]
		variance := scales[k]*scales[k] + gain*(rest*rest-scales[k]*scales[k])
		scales[k] = min(max(math.Sqrt(variance), leastScale), mostScale)
		means[k] += gain * rest
	}
}

// scaled is a Metropolis kernel of a real space whose proposal multiplies moves by scales.
type scaled struct{ *Metropolis }

// newScaled builds the kernel of a proposal that needs the gradient. Its step size starts at start, or is step and not
// adapted where that is not 0; target is the acceptance probability to which it is adapted.
func newScaled(name string, e energies.Energy, p Proposal, step, start, target float64) (*scaled, error) {
	eval, err := NewInformed(name, e, Sqrt, true)
	if err != nil {
		return nil, err
	}
	tuner := &Tuner{Var: StepSizeVar, Start: start, Target: target}
	if step != 0 {
		tuner.Start = step
	}
	if err := checkPositive(name, "step-size", tuner.Start); err != nil {
		return nil, err
	}
	k := &scaled{&Metropolis{Evaluator: eval, Proposal: p}}
	k.adapt(tuner, step == 0)
	k.Specs = append(k.Specs, scaleSpecs(e.Space())...)
	return k, nil
}

// Tune implements Kernel.
func (k *scaled) Tune(s *State, info *Info, last bool) {
	k.Metropolis.Tune(s, info, last)
	tuneScales(s)
}

// reals are the numbers of chain c of a state, as moves need them: the gradient of β·U, and the standard deviation of a
// move, which is the step size times the scale.
type reals struct {
	space *energies.Space
	x     []int32
	grad  []float32
	scale []float64
	step  float64
	beta  float64
}

// realsAt returns those of chain c at the point p, with step size and scales of s.
func realsAt(s *State, p *Point, c int) reals {
	d := p.X.Space.Sites
	return reals{p.X.Space, p.X.Chain(c), p.Grad[c*d : (c+1)*d], s.Var(scaleVar)[c*d : (c+1)*d], s.Var(StepSizeVar)[c], s.InverseTemperature(c)}
}

// at returns the number, the derivative of β·U, and the standard deviation of a move at a site.
func (r *reals) at(i int) (x, slope, sd float64) {
	return r.space.Value(r.x[i]), r.beta * float64(r.grad[i]), r.step * r.scale[i]
}
