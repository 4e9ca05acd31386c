package experiment

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/internal/selection"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
)

// logistic selects variables on minibatches. Every column is there twice, so that the posterior
// chooses one of each pair and has many modes.
var logistic = Experiment{
	Name:  "logistic",
	Doc:   "SGDLD on variable selection by logistic regression: ℓ1 error of the marginals against data read, and R-hat",
	Paper: "Sun, Dai, Dai, Zhou, Schuurmans 2023, section 6.2 and appendix C.2, figures 3, 6 and 7",
	run:   runLogistic,
}

// selectors are the samplers of figures 3 and 6. noP has the mean weight of SGDLD's states as its
// step; dlmc and rwm read all data.
var selectors = []struct {
	label, name string
	set         samplers.Settings
}{
	{"SGDLD-0.3", "sgdld", samplers.Settings{"polyak": "sampling:0.3"}},
	{"SGDLD-0.6", "sgdld", samplers.Settings{"polyak": "sampling:0.6"}},
	{"SGDLD-noC-0.3", "sgdld", samplers.Settings{"polyak": "sampling:0.3", "no-cache": "true"}},
	{"SGDLD-noP-0.3", "sgdld", samplers.Settings{}},
	{"DLMC", "dlmc", nil},
	{"RWM oracle", "rwm", nil},
}

func runLogistic(ctx context.Context, s Settings) (*Result, error) {
	variables, data, batch, passes, chains := 18, 20_000, 1000, 128, 16
	if s.Quick {
		variables, data, batch, passes, chains = 8, 1000, 50, 30, 4
	}
	e, err := selection.Simulate(variables, data, s.Seed+1)
	if err != nil {
		return nil, err
	}
	s.progress("exact marginals", 0, len(selectors)+1)
	truth, err := selectionMarginals(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &Result{Header: []string{"sampler", "passes", "l1_error", "rhat", "seconds"}}
	errorFigure := Figure{Name: "error", Title: fmt.Sprintf("%d variables, %d data, minibatches of %d, %d chains", variables, data, batch, chains), X: "passes through the data", Y: "ℓ1 error of the marginals of a chain", LogX: true, LogY: true}
	mixing := Figure{Name: "rhat", Title: "mixing", X: "passes through the data", Y: "largest R-hat of a variable", LogX: true, LogY: true}
	runs, jump := map[string]*selectionRun{}, 0.0
	for k, x := range selectors {
		s.progress(x.label, k+1, len(selectors)+1)
		set, updates := samplers.Settings{}, 1 // in a pass
		maps.Copy(set, x.set)
		if x.name == "sgdld" {
			set["batch"], updates = fmt.Sprint(batch), data/batch
		}
		if x.label == "SGDLD-noP-0.3" {
			set["fixed-step"] = fmt.Sprint(jump)
		}
		run, err := selectVariables(ctx, e, truth, x.name, set, updates, passes, chains, s.Seed)
		if err != nil {
			return nil, err
		}
		if x.label == "SGDLD-0.3" {
			jump = run.step
		}
		for j := range run.passes {
			out.Rows = append(out.Rows, []string{x.label, short(run.passes[j]), short(run.err[j]), short(run.rhat[j]), short(run.seconds[j])})
		}
		errorFigure.Lines = append(errorFigure.Lines, Line{Name: x.label, X: run.passes, Y: run.err})
		line := Line{Name: x.label}
		for j, r := range run.rhat {
			if r > 0 && !math.IsInf(r, 1) {
				line.X, line.Y = append(line.X, run.passes[j]), append(line.Y, r)
			}
		}
		if len(line.X) > 0 {
			mixing.Lines = append(mixing.Lines, line)
		}
		runs[x.label] = run
	}
	out.Figures = []Figure{errorFigure}
	if len(mixing.Lines) > 0 {
		out.Figures = append(out.Figures, mixing)
	}
	last := func(label string) float64 { return runs[label].err[len(runs[label].err)-1] }
	final := func(label string) float64 { return runs[label].rhat[len(runs[label].rhat)-1] }
	out.Claims = []Claim{
		{"SGDLD mixes faster than DLMC on all data, given as many data", fmt.Sprintf("ℓ1 error %.3f and %.3f", last("SGDLD-0.3"), last("DLMC")), last("SGDLD-0.3") < last("DLMC")},
		{"SGDLD has a smaller error than without cache", fmt.Sprintf("%.3f and %.3f", last("SGDLD-0.3"), last("SGDLD-noC-0.3")), last("SGDLD-0.3") < last("SGDLD-noC-0.3")},
		{"SGDLD has a smaller error than without Polyak step", fmt.Sprintf("%.3f and %.3f", last("SGDLD-0.3"), last("SGDLD-noP-0.3")), last("SGDLD-0.3") < last("SGDLD-noP-0.3")},
		{"SGDLD has a smaller error than random-walk Metropolis that reads all data", fmt.Sprintf("%.3f and %.3f", last("SGDLD-0.3"), last("RWM oracle")), last("SGDLD-0.3") < last("RWM oracle")},
		{"R-hat of SGDLD falls to 1", fmt.Sprintf("%.3f at h = 0.3, %.3f at h = 0.6", final("SGDLD-0.3"), final("SGDLD-0.6")), min(final("SGDLD-0.3"), final("SGDLD-0.6")) < 1.05},
	}
	return out, nil
}

// selectionMarginals returns P(β_i = 1). U depends on the sums of the pairs β_i + β_{d/2+i} only, so
// that 3^(d/2) states stand for 2^d: a sum of 1 has two.
func selectionMarginals(ctx context.Context, e *selection.Model) ([]float64, error) {
	d := e.Space().Sites
	half, states := d/2, 1
	for range half {
		states *= 3
	}
	x := energies.NewBatch(e.Space(), states)
	for k := range states {
		for i, rest := 0, k; i < half; i, rest = i+1, rest/3 {
			x.Chain(k)[i], x.Chain(k)[half+i] = int32(min(rest%3, 1)), int32(rest%3/2)
		}
	}
	u := make([]float64, states)
	if err := e.LogDensity(ctx, u, x); err != nil {
		return nil, err
	}
	top := math.Inf(-1)
	for _, t := range u {
		top = max(top, t)
	}
	one, total := make([]float64, d), 0.0
	for k, t := range u {
		w := math.Exp(t - top)
		for i := range half {
			if x.Chain(k)[i] != x.Chain(k)[half+i] {
				w *= 2
			}
		}
		total += w
		for i := range half {
			one[i] += w * float64(x.Chain(k)[i]+x.Chain(k)[half+i]) / 2
		}
	}
	for i := range half {
		one[i] /= total
		one[half+i] = one[i]
	}
	return one, nil
}

// selectionRun is the course of one run. step is the mean weight of a state in the second half.
type selectionRun struct {
	passes, err, rhat, seconds []float64
	step                       float64
}

// selectVariables runs chains and compares, after 1, 2, 4, ... passes, the marginals of each over the
// second half of its states, weighted, with the truth.
func selectVariables(ctx context.Context, e *selection.Model, truth []float64, name string, set samplers.Settings, updates, passes, chains int, seed uint64) (*selectionRun, error) {
	k, err := samplers.New(name, e, set)
	if err != nil {
		return nil, err
	}
	d, run, next := e.Space().Sites, &selectionRun{}, 1
	var draws, weights [][]float64 // [step][chain, site] and [step][chain]
	clock := newClock()
	_, err = samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: updates * passes, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			if every := max(1, updates/20); s.Step%int64(every) != 0 { // neighbouring states of one pass are alike
				return nil
			}
			row, w := make([]float64, len(s.X.Codes)), make([]float64, chains)
			for j, v := range s.X.Codes {
				row[j] = float64(v)
			}
			for c := range w {
				if w[c] = 1; s.Var(samplers.WeightVar) != nil {
					w[c] = s.Var(samplers.WeightVar)[c]
				}
			}
			draws, weights = append(draws, row), append(weights, w)
			if int(s.Step) >= next*updates {
				run.passes, run.seconds = append(run.passes, float64(next)), append(run.seconds, clock())
				run.measure(draws[len(draws)/2:], weights[len(weights)/2:], truth, chains, d)
				next *= 2
			}
			return nil
		}),
	}})
	sum, n := 0.0, 0.0
	for _, w := range weights[len(weights)/2:] {
		for _, t := range w {
			sum, n = sum+t, n+1
		}
	}
	run.step = sum / n
	return run, err
}

// measure appends the mean over chains of ‖marginals - truth‖₁, and the largest R-hat of a variable.
func (r *selectionRun) measure(draws, weights [][]float64, truth []float64, chains, d int) {
	total, rhat := 0.0, 0.0
	byChain := make([][][]float64, d)
	for c := range chains {
		for i := range d {
			sum, mass := 0.0, 0.0
			values := make([]float64, len(draws))
			for k, row := range draws {
				values[k] = row[c*d+i]
				sum, mass = sum+weights[k][c]*values[k], mass+weights[k][c]
			}
			total += math.Abs(sum/mass-truth[i]) / float64(chains)
			byChain[i] = append(byChain[i], values)
		}
	}
	for _, rows := range byChain {
		if r := diag.RHat(rows); r > rhat {
			rhat = r
		}
	}
	r.err, r.rhat = append(r.err, total), append(r.rhat, rhat)
}
