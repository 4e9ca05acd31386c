package samplers

import (
	"fmt"
	"math"
)

// PreconditionerVar holds the factors of the step size of each site, [site].
const PreconditionerVar = "preconditioner"

// checkFactors returns an *OptionError unless Factors are nil or as many positive numbers as sites.
func checkFactors(name string, o DMALAOptions, sites int) error {
	switch {
	case o.Factors == nil:
		return nil
	case o.Precondition:
		return &OptionError{name, "Factors", "", "excludes Precondition"}
	case len(o.Factors) != sites:
		return &OptionError{name, "Factors", "", fmt.Sprintf("%d factors for %d sites", len(o.Factors), sites)}
	}
	for _, f := range o.Factors {
		if err := checkPositive(name, "Factors", f); err != nil {
			return err
		}
	}
	return nil
}

// siteScales adapts a factor of the step size for each site by the rule of [Tuner], in steps
// that propose to change the site (componentwise scaling, Andrieu and Thoms 2008, section 5).
type siteScales struct {
	changed []bool // by the last proposal, [chain, site]
}

// prepare makes room for a step.
func (p *siteScales) prepare(s *State) { p.changed = resize(p.changed, len(s.X.Codes)) }

// note records which sites the proposal next of chain c changes.
func (p *siteScales) note(s *State, c int, next []int32) {
	x := s.X.Chain(c)
	for i, v := range next {
		p.changed[c*len(x)+i] = v != x[i]
	}
}

// adapt moves the factors after a step of warm-up.
func (p *siteScales) adapt(s *State, accept []float64) {
	d, factors, seen := s.X.Space.Sites, s.Var(PreconditionerVar), s.Var(PreconditionerVar+"_tuning")
	for c, a := range accept {
		seen[c]++
		gain, mean := 2*math.Pow(seen[c], -0.6)*(a-TargetAcceptance), 0.0
		row := factors[c*d : (c+1)*d]
		for i := range row {
			if p.changed[c*d+i] {
				row[i] = min(max(row[i]*math.Exp(gain), 1/tuneRange), tuneRange)
			}
			mean += math.Log(row[i]) / float64(d)
		}
		for i := range row {
			row[i] *= math.Exp(-mean)
		}
	}
}
