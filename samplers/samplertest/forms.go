package samplertest

import (
	"context"
	"errors"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// form is a way in which an energy may offer itself to a kernel: the optional
// interfaces that it has.
type form struct {
	name string
	// wrap gives base that form; p is the problem base comes from.
	wrap func(p *Problem, base energies.Differentiable) energies.Energy
}

// forms returns those that make a difference to a sampler on a problem, with settings
// and perhaps in an annealed run.
func forms(r samplers.Registration, p *Problem, set samplers.Settings, annealed bool) []form {
	switch r.Needs {
	case samplers.NeedsGradient:
		if set["batch"] != "" {
			return []form{
				{"terms", func(p *Problem, base energies.Differentiable) energies.Energy {
					return terms{tempered{tilted{gradientOnly{base}}}, p}
				}},
				{"terms, gradient", func(p *Problem, base energies.Differentiable) energies.Energy {
					return struct{ energies.Stochastic }{terms{tempered{tilted{gradientOnly{base}}}, p}}
				}},
			}
		}
		list := []form{
			{"gradient", func(_ *Problem, base energies.Differentiable) energies.Energy { return gradientOnly{base} }},
			{"tilt", func(_ *Problem, base energies.Differentiable) energies.Energy { return tilted{gradientOnly{base}} }},
		}
		if annealed {
			list = append(list, form{"tempered", func(_ *Problem, base energies.Differentiable) energies.Energy {
				return tempered{tilted{gradientOnly{base}}}
			}})
		}
		return list
	case samplers.NeedsModelConditional:
		return []form{{"model", func(p *Problem, base energies.Differentiable) energies.Energy { return model{densityOnly{base}, p} }}}
	}
	if r.Needs == samplers.NeedsEmbedding {
		return []form{{"embedded", func(p *Problem, base energies.Differentiable) energies.Energy {
			return embedded{densityOnly{base}, base, p}
		}}}
	}
	list := []form{{"density", func(_ *Problem, base energies.Differentiable) energies.Energy { return densityOnly{base} }}}
	if c, ok := p.Energy.(energies.Conditional); ok {
		list = append(list, form{"conditional", func(_ *Problem, base energies.Differentiable) energies.Energy {
			return conditional{densityOnly{base}, c}
		}})
	}
	return list
}

// densityOnly and gradientOnly hide optional interfaces of what they hold.
type densityOnly struct{ energies.Energy }

type gradientOnly struct{ energies.Differentiable }

// conditional adds the problem's own full conditionals.
type conditional struct {
	densityOnly
	c energies.Conditional
}

func (e conditional) LogConditional(ctx context.Context, lp []float64, site int, x energies.Batch) error {
	return e.c.LogConditional(ctx, lp, site, x)
}

// model adds the problem's made-up model.
type model struct {
	densityOnly
	p *Problem
}

func (e model) LogModelConditional(ctx context.Context, lp []float64, site int, x energies.Batch) error {
	s := x.Space.Values
	for c := range x.Chains() {
		for v := range int32(s) {
			lp[c*s+int(v)] = math.Inf(-1)
			if x.Space.Allows(site, v) {
				lp[c*s+int(v)] = e.p.ModelLogit(x.Chain(c), site, v)
			}
		}
	}
	return ctx.Err()
}

// tilted adds the softmax that a runtime would compute, in float32.
type tilted struct{ gradientOnly }

var _ energies.Tilted = tilted{}

func (e tilted) LogDensityTilt(ctx context.Context, u []float64, p []float32, x energies.Batch) error {
	if err := e.LogDensityGrad(ctx, u, p, x); err != nil {
		return err
	}
	s := x.Space.Values
	for r := range len(x.Codes) {
		softmax(p[r*s:(r+1)*s], x.Space.AllowedAt(r%x.Space.Sites))
	}
	return nil
}

// softmax replaces a row of gradients by softmax(½g) over the listed values
// (all where list is nil) and zero elsewhere, rounded to float32.
func softmax(row []float32, list []int32) {
	if list == nil {
		for v := range int32(len(row)) {
			list = append(list, v)
		}
	}
	top, sum, w := math.Inf(-1), 0.0, make([]float64, len(list))
	for _, v := range list {
		top = max(top, float64(row[v]))
	}
	for k, v := range list {
		w[k] = math.Exp((float64(row[v]) - top) / 2)
		sum += w[k]
	}
	clear(row)
	for k, v := range list {
		row[v] = float32(w[k] / sum)
	}
}

// split evaluates at most max states at a time.
type split struct {
	energies.Differentiable
	max int
}

func (e split) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	var err error
	for lo := 0; lo < len(u); lo += e.max {
		hi := min(lo+e.max, len(u))
		err = errors.Join(err, e.Differentiable.LogDensity(ctx, u[lo:hi], x.Slice(lo, hi)))
	}
	return err
}

func (e split) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	var err error
	row := x.Space.Sites * x.Space.Values
	for lo := 0; lo < len(u); lo += e.max {
		hi := min(lo+e.max, len(u))
		err = errors.Join(err, e.Differentiable.LogDensityGrad(ctx, u[lo:hi], g[lo*row:hi*row], x.Slice(lo, hi)))
	}
	return err
}

var errFault = errors.New("samplertest: planted fault")

// faulty fails at every evaluation once armed, having spoilt its outputs.
type faulty struct {
	energies.Differentiable
	armed *bool
}

func (e faulty) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	if *e.armed {
		clear(u)
		return errFault
	}
	return e.Differentiable.LogDensity(ctx, u, x)
}

func (e faulty) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	if *e.armed {
		clear(u)
		clear(g)
		return errFault
	}
	return e.Differentiable.LogDensityGrad(ctx, u, g, x)
}

// poisoned gives U = NaN at one state.
type poisoned struct {
	energies.Differentiable
	state []int32
}

func (e poisoned) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	err := e.Differentiable.LogDensity(ctx, u, x)
	e.poison(u, x)
	return err
}

func (e poisoned) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	err := e.Differentiable.LogDensityGrad(ctx, u, g, x)
	e.poison(u, x)
	return err
}

func (e poisoned) poison(u []float64, x energies.Batch) {
	for c := range u {
		same := true
		for i, v := range x.Chain(c) {
			same = same && v == e.state[i]
		}
		if same {
			u[c] = math.NaN()
		}
	}
}
