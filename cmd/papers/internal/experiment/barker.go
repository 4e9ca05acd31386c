package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/samplers"
)

// barker runs stochastic gradient Barker dynamics (SGBD) and SGLD on laws of one number whose gradients have noise of a
// stated law. The noise of a step is that of one or two of 65,536 terms, which are quantiles of the law. Corrected forms
// estimate the noise as they run.
var barker = Experiment{
	Name:  "barker",
	Doc:   "SGBD and SGLD on skewed laws, and under heavy-tailed noise of gradients: bias of means and quantiles",
	Paper: "Mauri, Zanella 2024, section 4.1 and appendices C and D.2, figures 2, 6, 7 and 9",
	run:   runBarker,
}

// noisyTarget is a law of one number with log-density u, up to a constant, and its derivative.
type noisyTarget struct {
	mean, sd float64
	u, slope func(x float64) float64
}

// skewNormal has the density 2φ(x)Φ(αx).
func skewNormal(alpha float64) noisyTarget {
	delta := alpha / math.Hypot(1, alpha)
	return noisyTarget{
		mean: delta * math.Sqrt(2/math.Pi), sd: math.Sqrt(1 - 2/math.Pi*delta*delta),
		u: func(x float64) float64 { return -x*x/2 + logNormalCDF(alpha*x) },
		slope: func(x float64) float64 {
			t := alpha * x
			return -x + alpha*math.Exp(-t*t/2-math.Log(2*math.Pi)/2-logNormalCDF(t))
		},
	}
}

// logNormalCDF is log Φ(t), far below zero by the first terms of its asymptotic series.
func logNormalCDF(t float64) float64 {
	if t > -30 {
		return math.Log(math.Erfc(-t/math.Sqrt2) / 2)
	}
	return -t*t/2 - math.Log(-t*math.Sqrt(2*math.Pi)) + math.Log1p(-1/(t*t))
}

// Quantile functions of laws of scale 1.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
func cauchyQuantile(p float64) float64 { return math.Tan(math.Pi * (p - 0.5)) }
func laplaceQuantile(p float64) float64 {
	return math.Copysign(math.Log1p(-2*math.Abs(p-0.5)), p-0.5)
}

// noisyRun is a sampler on a target: noise of scale tau by terms with the quantile function, b of them in a step, whose
// mean has scale 1 if they are multiplied by lift.
type noisyRun struct {
	sampler, form string
	sigma, tau    float64
	quantile      func(p float64) float64
	batch         int
	lift          float64
}

// noisyDraws are draws of groups of chains, sorted, [group][draw].
type noisyDraws [][]float64

// draws runs the sampler and drops the first quarter of the steps.
func (r noisyRun) draws(ctx context.Context, target noisyTarget, chains, steps int, seed uint64) (noisyDraws, error) {
	const terms, groups = 1 << 16, 10
	noise := make([]float64, terms)
	for j := range noise {
		noise[j] = r.lift * r.tau * r.quantile((float64(j)+0.5)/terms)
	}
	p := newPosterior(1, terms, func(g, x []float64, list []int32) float64 {
		g[0] = target.slope(x[0])
		for _, j := range list {
			g[0] += noise[j] / float64(len(list))
		}
		return target.u(x[0])
	})
	all := make(noisyDraws, groups)
	set := samplers.Settings{"form": r.form, "batch": fmt.Sprint(r.batch), "step-size": fmt.Sprint(r.sigma)}
	err := p.follow(ctx, r.sampler, set, nil, chains, steps, seed, func(step, chain int, x []float64) {
		if step >= steps/4 {
			all[chain%groups] = append(all[chain%groups], x[0])
		}
	})
	for _, list := range all {
		slices.Sort(list)
	}
	return all, err
}

// estimate is the mean over groups, and its standard error, of a number of sorted draws.
func (d noisyDraws) estimate(of func(sorted []float64) float64) (mean, se float64) {
	n, square := float64(len(d)), 0.0
	for _, list := range d {
		v := of(list)
		mean, square = mean+v/n, square+v*v/n
	}
	return mean, math.Sqrt(max(square-mean*mean, 0) / (n - 1))
}

// density is a line through the histogram of all draws from lo to hi.
func (d noisyDraws) density(name string, lo, hi float64) Line {
	const bins = 50
	line, width, total := Line{Name: name, X: make([]float64, bins), Y: make([]float64, bins)}, (hi-lo)/bins, 0
	for k := range line.X {
		line.X[k] = lo + (float64(k)+0.5)*width
	}
	for _, list := range d {
		total += len(list)
		for _, x := range list {
			if at := math.Floor((x - lo) / width); at >= 0 && at < bins {
				line.Y[int(at)] += 1 / width
			}
		}
	}
	for k := range line.Y {
		line.Y[k] /= float64(total)
	}
	return line
}

// curve is the density of a target of known normaliser, as density draws it.
func (t noisyTarget) curve(lo, hi, normaliser float64) Line {
	line := Line{Name: "target"}
	for x := lo; x <= hi; x += (hi - lo) / 100 {
		line.X, line.Y = append(line.X, x), append(line.Y, math.Exp(t.u(x))/normaliser)
	}
	return line
}

func sampleMean(sorted []float64) float64 {
	sum := 0.0
	for _, x := range sorted {
		sum += x / float64(len(sorted))
	}
	return sum
}

func upperQuantile(sorted []float64) float64 { return sorted[len(sorted)*95/100] }

func runBarker(ctx context.Context, s Settings) (*Result, error) {
	chains, steps := 50, 8000
	alphas, logs := []float64{1, 2, 5, 10, 20}, []float64{0, 0.5, 1, 1.5, 2}
	if s.Quick {
		chains, steps, alphas, logs = 20, 200, []float64{5, 20}, []float64{0.5, 1.5}
	}
	out := &Result{Header: []string{"figure", "noise", "tau", "alpha", "sampler", "form", "sigma", "bias", "standard_error"}}
	bias := map[string][]float64{} // by figure, sampler, form and number of step size, along its axis
	samplersHere, forms, steps2 := []string{"sgbd", "sgld"}, []string{"vanilla", "corrected"}, []float64{0.1, 0.5}
	key := func(figure, sampler, form string, k int) string { return fmt.Sprint(figure, sampler, form, k) }
	done, total := 0, len(alphas)*2*8+len(logs)*2*4
	for f, times := range []float64{1, 10} { // figures 2 and 9a, then 9b
		figure := []string{"2, 9a", "9b"}[f]
		means := Figure{Name: []string{"skew", "skew-noisy"}[f], Title: fmt.Sprintf("skew-normal laws, noise of %g sd", times), X: "skewness α", Y: "relative bias of the mean", LogX: true}
		shapes := map[float64]*Figure{}
		for _, sampler := range samplersHere {
			for _, form := range forms {
				for k, ratio := range steps2 {
					line := Line{Name: fmt.Sprintf("%s %s, σ = %g sd", form, sampler, ratio), X: alphas}
					for _, alpha := range alphas {
						s.progress("skew-normal, "+line.Name, done, total)
						done++
						target := skewNormal(alpha)
						r := noisyRun{sampler, form, ratio * target.sd, times * target.sd, normalQuantile, 2, math.Sqrt2}
						draws, err := r.draws(ctx, target, chains, steps/(1+3*k), s.Seed)
						if err != nil {
							return nil, err
						}
						mean, se := draws.estimate(sampleMean)
						line.Y = append(line.Y, mean/target.mean-1)
						out.Rows = append(out.Rows, []string{"\"" + figure + "\"", "normal", short(r.tau), short(alpha), sampler, form, short(r.sigma), short(mean/target.mean - 1), short(se / target.mean)})
						if f == 0 && form == "vanilla" && (alpha == 5 || alpha == 20) {
							if shapes[alpha] == nil {
								shapes[alpha] = &Figure{Name: fmt.Sprintf("density%g", alpha), Title: fmt.Sprintf("skew-normal law, α = %g", alpha), X: "θ", Y: "density", Lines: []Line{target.curve(-1, 4, math.Sqrt(math.Pi/2))}}
							}
							shapes[alpha].Lines = append(shapes[alpha].Lines, draws.density(line.Name, -1, 4))
						}
					}
					bias[key(figure, sampler, form, k)] = line.Y
					if f == 0 && form == "corrected" || f == 1 && k == 0 { // lines that cover others
						continue
					}
					means.Lines = append(means.Lines, line)
				}
			}
		}
		out.Figures = append(out.Figures, means)
		for _, alpha := range alphas {
			if shapes[alpha] != nil {
				out.Figures = append(out.Figures, *shapes[alpha])
			}
		}
	}
	normal := noisyTarget{sd: 1, u: func(x float64) float64 { return -x * x / 2 }, slope: func(x float64) float64 { return -x }}
	exact := normalQuantile(0.95)
	for f, quantile := range []func(float64) float64{laplaceQuantile, cauchyQuantile} {
		figure, law := []string{"6", "7"}[f], []string{"Laplace", "Cauchy"}[f]
		quantiles := Figure{Name: law, Title: "normal law, " + law + " noise of gradients", X: "log(1 + τ)", Y: "bias of the 95% quantile"}
		shapes := Figure{Name: law + "-density", Title: "normal law, " + law + " noise of scale e^1.5 - 1", X: "θ", Y: "density", Lines: []Line{normal.curve(-5, 5, math.Sqrt(2*math.Pi))}}
		for _, sampler := range samplersHere {
			for k, sigma := range steps2 {
				line := Line{Name: fmt.Sprintf("%s, σ = %g", sampler, sigma), X: logs}
				for _, at := range logs {
					s.progress(law+" noise, "+line.Name, done, total)
					done++
					r := noisyRun{sampler, "vanilla", sigma, math.Expm1(at), quantile, 1, 1}
					draws, err := r.draws(ctx, normal, chains, steps/(1+3*k), s.Seed)
					if err != nil {
						return nil, err
					}
					q, se := draws.estimate(upperQuantile)
					line.Y = append(line.Y, q-exact)
					out.Rows = append(out.Rows, []string{figure, law, short(r.tau), "", sampler, "vanilla", short(sigma), short(q - exact), short(se)})
					if at == 1.5 {
						shapes.Lines = append(shapes.Lines, draws.density(line.Name, -5, 5))
					}
				}
				bias[key(figure, sampler, "vanilla", k)] = line.Y
				quantiles.Lines = append(quantiles.Lines, line)
			}
		}
		out.Figures = append(out.Figures, quantiles, shapes)
	}
	out.Claims = barkerClaims(func(figure, sampler, form string, k int) []float64 { return bias[key(figure, sampler, form, k)] })
	return out, nil
}

// barkerClaims are those of section 4.1 and appendices C and D.2. of returns biases along the axis of a figure, for step
// size k: small or large.
func barkerClaims(of func(figure, sampler, form string, k int) []float64) []Claim {
	last := func(x []float64) float64 { return x[len(x)-1] }
	far := func(x, y []float64) float64 { // the largest difference
		most := 0.0
		for k := range x {
			most = max(most, math.Abs(x[k]-y[k]))
		}
		return most
	}
	size := func(x []float64) float64 { // the mean absolute value
		sum := 0.0
		for _, v := range x {
			sum += math.Abs(v) / float64(len(x))
		}
		return sum
	}
	const skew, noisy = "2, 9a", "9b"
	sb, lb := of(skew, "sgbd", "vanilla", 0), of(skew, "sgld", "vanilla", 0)
	sbLarge, lbLarge := of(skew, "sgbd", "vanilla", 1), of(skew, "sgld", "vanilla", 1)
	formB, formL := max(far(sb, of(skew, "sgbd", "corrected", 0)), far(sbLarge, of(skew, "sgbd", "corrected", 1))), max(far(lb, of(skew, "sgld", "corrected", 0)), far(lbLarge, of(skew, "sgld", "corrected", 1)))
	noise := map[string]float64{}
	for _, name := range []string{"sgbd", "sgld"} {
		for _, form := range []string{"vanilla", "corrected"} {
			noise[name+form] = size(of(noisy, name, form, 1))
		}
	}
	quantiles := func(figure string, k int) (float64, float64) {
		return last(of(figure, "sgbd", "vanilla", k)), last(of(figure, "sgld", "vanilla", k))
	}
	small, smallL := quantiles("6", 0)
	large, largeL := quantiles("6", 1)
	heavy, heavyL := quantiles("7", 0)
	heavyLarge, heavyLargeL := quantiles("7", 1)
	return []Claim{
		{"with the large step size the mean of SGBD is less biased than that of SGLD on the most skewed law (figure 2)", fmt.Sprintf("relative bias %.3f and %.3f; with the small one %.3f and %.3f", last(sbLarge), last(lbLarge), last(sb), last(lb)), math.Abs(last(sbLarge)) < math.Abs(last(lbLarge))},
		{"a larger step size changes the bias of SGBD less (figure 2)", fmt.Sprintf("by %.3f at most, of SGLD by %.3f", far(sb, sbLarge), far(lb, lbLarge)), far(sb, sbLarge) < far(lb, lbLarge)},
		{"with noise of 1 sd corrected forms differ less from vanilla than the samplers differ (figure 9a)", fmt.Sprintf("SGBD by %.3f, SGLD by %.3f; the samplers by %.3f", formB, formL, far(sbLarge, lbLarge)), max(formB, formL) < far(sbLarge, lbLarge)},
		{"with noise of 10 sd and the large step size they have less bias (figure 9b)", fmt.Sprintf("mean absolute bias of SGBD %.2f and %.2f, of SGLD %.2f and %.2f", noise["sgbdcorrected"], noise["sgbdvanilla"], noise["sgldcorrected"], noise["sgldvanilla"]), noise["sgbdcorrected"] < noise["sgbdvanilla"] && noise["sgldcorrected"] < noise["sgldvanilla"]},
		{"with Laplace noise SGBD has less bias than SGLD at the large step size (figure 6)", fmt.Sprintf("of the 95%% quantile %.2f and %.2f; with the small step size %.2f and %.2f", large, largeL, small, smallL), large < largeL},
		{"with Cauchy noise SGBD is far more robust (figure 7)", fmt.Sprintf("bias %.2f and %.2f with σ = 0.1, %.2f and %.2f with 0.5", heavy, heavyL, heavyLarge, heavyLargeL), heavy < heavyL/2 && heavyLarge < heavyLargeL/2},
	}
}
