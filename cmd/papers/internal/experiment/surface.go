package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// surfaces compares draws on curves and a sphere with exact laws. The paper's figure has contours only; its law, exp(U)
// given g(x) = 0, has here a density along one number.
var surfaces = Experiment{
	Name:  "surfaces",
	Doc:   "O-Langevin and O-SVGD on a parabola and a sphere, from states off them, against the exact laws",
	Paper: "Zhang, Liu, Tong 2022; the slides on constrained sampling",
	run:   runSurfaces,
}

// plain is a function of real numbers with its gradient.
type plain struct {
	space *energies.Space
	f     func(x, slope []float64) float64
}

var _ energies.Differentiable = plain{}

// Space implements energies.Energy.
func (e plain) Space() *energies.Space { return e.space }

// LogDensity implements energies.Energy.
func (e plain) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return e.LogDensityGrad(ctx, u, make([]float32, len(x.Codes)), x)
}

// LogDensityGrad implements energies.Differentiable.
func (e plain) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	d := e.space.Sites
	slope := make([]float64, d)
	for c := range u {
		u[c] = e.f(numbersOf(x, c), slope)
		for i, v := range slope {
			g[c*d+i] = float32(v)
		}
	}
	return ctx.Err()
}

// numbersOf returns the numbers of chain c.
func numbersOf(x energies.Batch, c int) []float64 {
	at := make([]float64, x.Space.Sites)
	for i, code := range x.Chain(c) {
		at[i] = x.Space.Value(code)
	}
	return at
}

// surfaceProblem is U and g with the density of the first number on the surface, up to a factor.
type surfaceProblem struct {
	name    string
	d       int
	u, g    func(x, slope []float64) float64
	density func(t float64) float64
	lo, hi  float64
}

// The parabola has the density exp(U(x, x²)): the length of the curve and |∇g| cancel. On the sphere |∇g| is constant, and
// uniform points have a uniform first number.
var surfaceProblems = []surfaceProblem{
	{"parabola", 2, func(x, slope []float64) float64 {
		slope[0], slope[1] = -2*(x[0]-0.3), -(x[1] - 1)
		return -(x[0]-0.3)*(x[0]-0.3) - (x[1]-1)*(x[1]-1)/2
	}, func(x, slope []float64) float64 {
		slope[0], slope[1] = -2*x[0], 1
		return x[1] - x[0]*x[0]
	}, func(t float64) float64 { return math.Exp(-(t-0.3)*(t-0.3) - (t*t-1)*(t*t-1)/2) }, -3, 3},
	{"sphere", 3, func(x, slope []float64) float64 {
		slope[0], slope[1], slope[2] = 3, 0, 0
		return 3 * x[0]
	}, func(x, slope []float64) float64 {
		sum := -1.0
		for i, v := range x {
			slope[i] = 2 * v
			sum += v * v
		}
		return sum
	}, func(t float64) float64 { return math.Exp(3 * t) }, -1, 1},
}

func runSurfaces(ctx context.Context, s Settings) (*Result, error) {
	chains, particles, length := 4000, 100, 4.0 // chains of O-Langevin; time in the equation
	if s.Quick {
		chains, particles, length = 200, 20, 0.3
	}
	out := &Result{Header: []string{"surface", "sampler", "step_size", "steps", "chains", "distance_of_laws", "noise", "off_surface", "start_off_surface"}}
	distances, off := map[string][]float64{}, 0.0
	total := len(surfaceProblems) * 4
	for k, p := range surfaceProblems {
		exact := p.law()
		figure := Figure{Name: p.name, Title: "distribution function on the " + p.name, X: "x", Lines: []Line{{Name: "exact", X: exact.x, Y: exact.share}}}
		for j, run := range []struct {
			sampler string
			step    float64
			chains  int
		}{{"o-langevin", 0.6, chains}, {"o-langevin", 0.3, chains}, {"o-langevin", 0.1, chains}, {"o-svgd", 0.2, particles}} {
			s.progress(p.name+", "+run.sampler, k*4+j, total)
			steps := int(math.Ceil(2 * length / (run.step * run.step)))
			if run.sampler == "o-svgd" {
				steps = int(math.Ceil(25 * length / run.step))
			}
			x, before, away, err := p.run(ctx, run.sampler, run.step, run.chains, steps, s.Seed)
			if err != nil {
				return nil, err
			}
			slices.Sort(x)
			most := 0.0
			line := Line{Name: fmt.Sprintf("%s, step size %g", run.sampler, run.step)}
			for i, v := range x {
				below := float64(i) / float64(len(x))
				most = max(most, math.Abs(exact.at(v)-below), math.Abs(exact.at(v)-below-1/float64(len(x))))
				if i%max(len(x)/50, 1) == 0 {
					line.X, line.Y = append(line.X, v), append(line.Y, below)
				}
			}
			figure.Lines = append(figure.Lines, line)
			noise := 0.87 / math.Sqrt(float64(run.chains)) // mean of Kolmogorov's distance for independent draws
			name := p.name + run.sampler
			if distances[name] = append(distances[name], most); run.step < 0.3 { // of a small step size
				off = max(off, away)
			}
			out.Rows = append(out.Rows, []string{p.name, run.sampler, short(run.step), fmt.Sprint(steps), fmt.Sprint(run.chains), short(most), short(noise), short(away), short(before)})
		}
		out.Figures = append(out.Figures, figure)
		d, noise := distances[p.name+"o-langevin"], 0.87/math.Sqrt(float64(chains))
		out.Claims = append(out.Claims, Claim{"the law of O-Langevin on the " + p.name + " comes to the exact one as the step size falls",
			fmt.Sprintf("Kolmogorov's distance %.3f, %.3f, %.3f at 0.6, 0.3, 0.1; of as many independent draws %.3f", d[0], d[1], d[2], noise), d[2] < d[0] && d[2] < 2*noise},
			Claim{"so do the particles of O-SVGD", fmt.Sprintf("%.3f for %d particles; of as many independent draws %.3f", distances[p.name+"o-svgd"][0], particles, 0.87/math.Sqrt(float64(particles))),
				distances[p.name+"o-svgd"][0] < 0.87/math.Sqrt(float64(particles))})
	}
	out.Claims = append(out.Claims, Claim{"states that start off the surface come to it", fmt.Sprintf("from 0.6 to at most %.4f off, on average over chains, at step size 0.1", off), off < 0.01})
	return out, nil
}

// run returns the first numbers of the last states, and the mean distance |g|/|∇g| from the surface of the first and the last
// states.
func (p surfaceProblem) run(ctx context.Context, sampler string, step float64, chains, steps int, seed uint64) (x []float64, before, after float64, err error) {
	space := &energies.Space{Kind: energies.Real, Sites: p.d, Values: 1}
	e, err := energies.OnZero(plain{space, p.u}, plain{space, p.g})
	if err != nil {
		return nil, 0, 0, err
	}
	kernel, err := samplers.New(sampler, e, samplers.Settings{"step-size": fmt.Sprint(step)})
	if err != nil {
		return nil, 0, 0, err
	}
	ids := make([]int64, chains)
	for c := range ids {
		ids[c] = int64(c)
	}
	away := func(x energies.Batch) float64 {
		sum, slope := 0.0, make([]float64, p.d)
		for c := range chains {
			g, square := p.g(numbersOf(x, c), slope), 0.0
			for _, v := range slope {
				square += v * v
			}
			sum += math.Abs(g) / math.Sqrt(square) / float64(chains)
		}
		return sum
	}
	start := samplers.RandomCodes(space, seed, ids)
	before = away(start)
	r, err := samplers.Run(ctx, samplers.Config{Kernel: kernel, Init: start.Codes, Steps: steps, Seed: seed})
	if err != nil {
		return nil, 0, 0, err
	}
	for c := range chains {
		x = append(x, numbersOf(r.State.X, c)[0])
	}
	return x, before, away(r.State.X), nil
}

// distribution is a distribution function at increasing points.
type distribution struct{ x, share []float64 }

// law integrates the density by Simpson's rule.
func (p surfaceProblem) law() distribution {
	const n = 400
	d, h := distribution{[]float64{p.lo}, []float64{0}}, (p.hi-p.lo)/n
	for k := range n {
		a := p.lo + float64(k)*h
		d.x = append(d.x, a+h)
		d.share = append(d.share, d.share[k]+h/6*(p.density(a)+4*p.density(a+h/2)+p.density(a+h)))
	}
	for k := range d.share {
		d.share[k] /= d.share[n]
	}
	return d
}

// at returns the probability below t.
func (d distribution) at(t float64) float64 {
	k, _ := slices.BinarySearch(d.x, t)
	if k == 0 {
		return 0
	}
	if k == len(d.x) {
		return 1
	}
	return d.share[k-1] + (t-d.x[k-1])/(d.x[k]-d.x[k-1])*(d.share[k]-d.share[k-1])
}
