package experiment

import (
	"context"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// posterior is a log-density on R^D whose terms are data.
type posterior struct {
	space energies.Space
	all   []int32 // numbers of all terms
	// estimate sets g, [site], to the gradient at x and returns the log-density: estimates from the listed terms, and both
	// exact from all.
	estimate func(g, x []float64, terms []int32) float64
}

var _ energies.Minibatch = (*posterior)(nil)

func newPosterior(sites, terms int, estimate func(g, x []float64, terms []int32) float64) *posterior {
	p := &posterior{energies.Space{Kind: energies.Real, Sites: sites, Values: 1}, make([]int32, terms), estimate}
	for j := range p.all {
		p.all[j] = int32(j)
	}
	return p
}

// Space implements energies.Energy.
func (p *posterior) Space() *energies.Space { return &p.space }

// Terms implements energies.Minibatch.
func (p *posterior) Terms() int { return len(p.all) }

// LogDensity implements energies.Energy.
func (p *posterior) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return p.LogDensityGrad(ctx, u, make([]float32, len(x.Codes)), x)
}

// LogDensityGrad implements energies.Differentiable.
func (p *posterior) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	terms := make([][]int32, len(u))
	for c := range terms {
		terms[c] = p.all
	}
	return p.EstimateGrad(ctx, u, g, x, terms)
}

// EstimateGrad implements energies.Minibatch.
func (p *posterior) EstimateGrad(ctx context.Context, u []float64, g []float32, x energies.Batch, terms [][]int32) error {
	d := p.space.Sites
	energies.Parallel(len(u), len(g)*(1+len(terms[0])), func(_, lo, hi int) {
		at, grad := make([]float64, d), make([]float64, d)
		for c := lo; c < hi && ctx.Err() == nil; c++ {
			p.numbers(at, x.Chain(c))
			u[c] = p.estimate(grad, at, terms[c])
			for i, v := range grad {
				g[c*d+i] = float32(v)
			}
		}
	})
	return ctx.Err()
}

// numbers sets x to the numbers of codes.
func (p *posterior) numbers(x []float64, codes []int32) {
	for i, code := range codes {
		x[i] = p.space.Value(code)
	}
}

// follow runs a sampler with one step size for all sites, from a start for each chain, [chain][site], or from normal
// draws, and shows the state of every chain after every step, counted from 0. see must not keep x.
func (p *posterior) follow(ctx context.Context, name string, set samplers.Settings, start [][]float64, chains, steps int, seed uint64, see func(step, chain int, x []float64)) error {
	k, err := samplers.New(name, p, set)
	if err != nil {
		return err
	}
	var init []int32
	for _, x := range start {
		for _, v := range x {
			init = append(init, energies.RealCode(v))
		}
	}
	x := make([]float64, p.space.Sites)
	_, err = samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Init: init, Steps: steps, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			for c := range s.Chains() {
				p.numbers(x, s.X.Chain(c))
				see(int(s.Step)-1, c, x)
			}
			return nil
		}),
	}})
	return err
}
