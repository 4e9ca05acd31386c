package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/samplers/rng"
)

// barkerLogistic samples a logistic regression whose coefficients have unlike scales by minibatches of a hundredth of the
// rows, with the paper's step sizes. The exact law is that of draws by the Barker proposal on all rows.
var barkerLogistic = Experiment{
	Name:  "barker-logistic",
	Doc:   "SGBD and SGLD on a logistic regression with unlike scales: bias and mixing; shrinkage by minibatches and its correction",
	Paper: "Mauri, Zanella 2024, sections 3.3 and 4.2, figures 1, 3 and 8",
	Files: "a table with a header and the target, 0 or 1, in the last column, as sepsis.csv; without, one is made",
	run:   runBarkerLogistic,
}

// Uses of random numbers of barker-logistic.
const (
	useAdmissions uint32 = iota + 50
	useShrinkage
)

// admissions is a made table of the shape of sepsis.csv: age, sex, number of the episode, and survival.
func admissions(seed uint64, rows int) *regressionTable {
	t := &regressionTable{name: "admissions", features: 3}
	var r rng.Stream
	r.Reset(seed, 0, 0, useAdmissions)
	for range rows {
		age, sex, episode := float64(r.IntN(101)), float64(r.IntN(2)), float64(1+r.IntN(5))
		t.x, t.y = append(t.x, age, sex, episode), append(t.y, 0)
		if r.Float64() < 1/(1+math.Exp(-(5.5-0.04*age-0.1*sex-0.1*episode))) {
			t.y[len(t.y)-1] = 1
		}
	}
	return t
}

// logisticPosterior is that of the coefficients of all features and a constant, in this order, with standard normal priors.
func logisticPosterior(t *regressionTable) *posterior {
	type row [8]float64 // features and target
	f, n := t.features, len(t.y)
	var unlike []row
	counts := map[row]float64{}
	for j, y := range t.y {
		at := row{7: y}
		if copy(at[:], t.x[j*f:(j+1)*f]); counts[at] == 0 {
			unlike = append(unlike, at)
		}
		counts[at]++
	}
	add := func(g, b, x []float64, y, weight float64) float64 {
		logit := b[f]
		for i, v := range x {
			logit += b[i] * v
		}
		e := math.Exp(-math.Abs(logit))
		p := 1 / (1 + e)
		if logit < 0 {
			p = e / (1 + e)
		}
		rest := weight * (y - p)
		for i, v := range x {
			g[i] += rest * v
		}
		g[f] += rest
		return weight * (y*logit - max(logit, 0) - math.Log1p(e))
	}
	return newPosterior(f+1, n, func(g, b []float64, terms []int32) float64 {
		u := 0.0
		for i, v := range b {
			g[i] = -v
			u -= v * v / 2
		}
		if len(terms) == n {
			for _, at := range unlike {
				u += add(g, b, at[:f], at[7], counts[at])
			}
			return u
		}
		for _, j := range terms {
			u += add(g, b, t.x[int(j)*f:int(j+1)*f], t.y[j], float64(n)/float64(len(terms)))
		}
		return u
	})
}

// moments are the mean and the standard deviation of every site.
type moments struct{ mean, sd []float64 }

// exactDraws returns the moments of a posterior by the Barker proposal with scales and step sizes from warm-up, and the last
// state of each chain.
func (p *posterior) exactDraws(ctx context.Context, chains, warmup, steps int, seed uint64) (m moments, last [][]float64, err error) {
	k, err := samplers.New("barker", p, nil)
	if err != nil {
		return m, nil, err
	}
	d, count := p.space.Sites, float64(chains*steps)
	m, x := moments{make([]float64, d), make([]float64, d)}, make([]float64, d)
	r, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Init: make([]int32, chains*d), Warmup: warmup, Steps: steps, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			for c := 0; c < s.Chains() && !s.Warmup; c++ {
				p.numbers(x, s.X.Chain(c))
				for i, v := range x {
					m.mean[i], m.sd[i] = m.mean[i]+v/count, m.sd[i]+v*v/count
				}
			}
			return nil
		}),
	}})
	if err != nil {
		return m, nil, err
	}
	for i, mean := range m.mean {
		m.sd[i] = math.Sqrt(m.sd[i] - mean*mean)
	}
	for c := range chains {
		last = append(last, make([]float64, d))
		p.numbers(last[c], r.State.X.Chain(c))
	}
	return m, last, nil
}

func runBarkerLogistic(ctx context.Context, s Settings) (*Result, error) {
	rows, chains, steps, warmup := 100_000, 4, 50_000, 10_000
	if s.Quick {
		rows, chains, steps, warmup = 2000, 4, 100, 200
	}
	t := admissions(s.Seed, rows)
	if len(s.Files) > 0 {
		var err error
		if t, err = readRegression(s.Files[0]); err != nil {
			return nil, err
		}
	}
	if t.features > 7 {
		return nil, &UsageError{fmt.Sprintf("%s: %d features; want 7 at most", t.name, t.features)}
	}
	p := logisticPosterior(t)
	s.progress("all rows", 0, 5)
	exact, start, err := p.exactDraws(ctx, chains, warmup, warmup, s.Seed)
	if err != nil {
		return nil, err
	}
	out := &Result{Header: []string{"sampler", "sigma", "coefficient", "mean", "exact_mean", "sd", "exact_sd", "effective_draws"}}
	runs := []struct {
		name  string
		sigma float64
	}{{"sgld", 0.0002}, {"sgbd", 0.00075}, {"sgld", 0.0004}, {"sgbd", 0.0015}}
	var ratios [][]float64 // of standard deviations, [run][coefficient]
	var effective [][]float64
	traces := map[string]*Figure{}
	var end []float64
	for k, r := range runs {
		s.progress(fmt.Sprintf("%s, σ = %g", r.name, r.sigma), 1+k, 1+len(runs))
		draws := make([][][]float64, p.space.Sites) // [coefficient][chain]
		for i := range draws {
			draws[i] = make([][]float64, chains)
		}
		err := p.follow(ctx, r.name, samplers.Settings{"form": "vanilla", "batch": fmt.Sprint(len(p.all) / 100), "step-size": fmt.Sprint(r.sigma)}, start, chains, steps, s.Seed, func(_, chain int, x []float64) {
			for i, v := range x {
				draws[i][chain] = append(draws[i][chain], v)
			}
			if chain == 0 {
				end = append(end[:0], x...)
			}
		})
		if err != nil {
			return nil, err
		}
		var ratio, ess []float64
		for i, of := range draws {
			sum := diag.Summarize(of)
			ratio, ess = append(ratio, float64(sum.SD)/exact.sd[i]), append(ess, float64(sum.ESSBulk))
			out.Rows = append(out.Rows, []string{r.name, short(r.sigma), fmt.Sprint(1 + i), short(float64(sum.Mean)), short(exact.mean[i]), short(float64(sum.SD)), short(exact.sd[i]), short(float64(sum.ESSBulk))})
			if i > 1 {
				continue
			}
			name := fmt.Sprintf("%s%d", []string{"small", "large"}[k/2], 1+i)
			if traces[name] == nil {
				traces[name] = &Figure{Name: name, Title: fmt.Sprintf("coefficient %d, %s step sizes", 1+i, name[:5]), X: "step", Y: "coefficient"}
				for _, side := range []float64{-2, 2} {
					at := exact.mean[i] + side*exact.sd[i]
					traces[name].Lines = append(traces[name].Lines, Line{fmt.Sprintf("mean %+g sd", side), []float64{0, float64(steps)}, []float64{at, at}})
				}
				out.Figures = append(out.Figures, Figure{Name: name})
			}
			line := Line{Name: fmt.Sprintf("%s, σ = %g", r.name, r.sigma)}
			for step := 0; step < steps; step += max(1, steps/400) {
				line.X, line.Y = append(line.X, float64(step)), append(line.Y, of[0][step])
			}
			traces[name].Lines = append(traces[name].Lines, line)
		}
		ratios, effective = append(ratios, ratio), append(effective, ess)
	}
	for k := range out.Figures {
		out.Figures[k] = *traces[out.Figures[k].Name]
	}
	faster := true
	for i := 1; i < p.space.Sites; i++ {
		faster = faster && effective[1][i] > effective[0][i]
	}
	out.Claims = []Claim{
		{"with step sizes for the first coefficient the others mix faster under SGBD (figure 3, top)", fmt.Sprintf("effective draws in %d: SGBD %.0f, SGLD %.0f", chains*steps, effective[1][1:], effective[0][1:]), faster},
		{"of the first coefficient the doubled step size inflates the standard deviation under SGLD (figure 3, bottom)", fmt.Sprintf("%.2f and %.2f times the exact one", ratios[0][0], ratios[2][0]), ratios[2][0] > 1.5*ratios[0][0]},
		{"under SGBD less", fmt.Sprintf("%.2f and %.2f", ratios[1][0], ratios[3][0]), ratios[3][0]/ratios[1][0] < ratios[2][0]/ratios[0][0]},
	}
	figure, claims := p.shrinkage(end, s)
	out.Figures, out.Claims = append(out.Figures, figure), append(out.Claims, claims...)
	return out, nil
}

// shrinkage estimates the probability that a Barker move of z at b keeps its sign, from minibatches of a tenth of the terms,
// as it stands and corrected, for the coordinate whose derivative is nearest to its noise, as in the paper.
func (p *posterior) shrinkage(b []float64, s Settings) (Figure, []Claim) {
	samples, batch, points := 4000, len(p.all)/10, 41
	if s.Quick {
		samples = 100
	}
	exact, d := make([]float64, len(b)), len(b)
	p.estimate(exact, b, p.all)
	estimates, terms := make([]float64, samples*d), make([]int32, batch)
	var r rng.Stream
	r.Reset(s.Seed, 0, 0, useShrinkage)
	for k := range samples {
		for j := range terms {
			terms[j] = int32(r.IntN(len(p.all)))
		}
		p.estimate(estimates[k*d:(k+1)*d], b, terms)
	}
	at, least, tau := 0, math.Inf(1), make([]float64, d)
	for i := range d {
		square := 0.0
		for k := range samples {
			rest := estimates[k*d+i] - exact[i]
			square += rest * rest / float64(samples)
		}
		tau[i] = math.Sqrt(square)
		if odd := math.Abs(math.Log(math.Abs(exact[i]) / tau[i])); odd < least {
			least, at = odd, i
		}
	}
	slope, noise, limit := exact[at], tau[at], 1.702/tau[at]
	lines := []Line{{Name: "p"}, {Name: "E p of the minibatch"}, {Name: "E p, corrected"}, {"-1.702/τ", []float64{-limit, -limit}, []float64{0, 1}}, {"1.702/τ", []float64{limit, limit}, []float64{0, 1}}}
	shrinks, corrected, vanilla := true, 0.0, 0.0
	for k := range points {
		z := 3 * limit * (2*float64(k)/float64(points-1) - 1)
		p := [3]float64{0: 1 / (1 + math.Exp(-z*slope))}
		stretch := 1.702 / math.Sqrt(max(1.702*1.702-noise*noise*z*z, 0))
		for j := range samples {
			t := z * estimates[j*d+at]
			p[1] += 1 / (1 + math.Exp(-t)) / float64(samples)
			if t != 0 {
				p[2] += 1 / (1 + math.Exp(-t*stretch)) / float64(samples)
			} else {
				p[2] += 0.5 / float64(samples)
			}
		}
		for i, v := range p {
			lines[i].X, lines[i].Y = append(lines[i].X, z), append(lines[i].Y, v)
		}
		shrinks = shrinks && math.Abs(p[1]-0.5) <= math.Abs(p[0]-0.5)+0.02
		if math.Abs(z) < limit {
			vanilla, corrected = max(vanilla, math.Abs(p[1]-p[0])), max(corrected, math.Abs(p[2]-p[0]))
		}
	}
	title := fmt.Sprintf("coefficient %d, derivative %.3g, noise τ = %.3g", 1+at, slope, noise)
	return Figure{Name: "shrinkage", Title: title, X: "move z", Y: "probability to keep the sign", Lines: lines}, []Claim{
		{"minibatches shrink the probability towards one half (figure 1)", fmt.Sprintf("%s: by %.4f at most for |z| < 1.702/τ", title, vanilla), shrinks && vanilla > 0.01},
		{"corrected, its error is below 0.019 for |z| < 1.702/τ", fmt.Sprintf("%.4f", corrected), corrected < 0.019},
	}
}
