package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	_ "github.com/gradhop/gradhop/samplers/special"
)

// ising compares samplers on an Ising lattice in a field, whose mean magnetisation is known from
// a long run of coloured Gibbs.
var ising = Experiment{
	Name:  "ising",
	Doc:   "Ising lattice: sites changed and acceptance by step size, error of the mean by step and second, effective draws by coupling",
	Paper: "Zhang, Liu and Liu 2022, section 7.1, figures 2 and 3",
	run:   runIsing,
}

// isingSamplers are those of figure 3. DMALA and DULA have the paper's step sizes for spins.
var isingSamplers = []struct {
	name, label string
	set         samplers.Settings
}{
	{"gibbs", "Gibbs one site", samplers.Settings{"scan": "systematic", "updates": "1"}},
	{"gwg", "GWG", nil},
	{"lb", "LB-1", nil},
	{"dula", "DULA", samplers.Settings{"step-size": "0.4"}},
	{"dmala", "DMALA", samplers.Settings{"step-size": "0.8"}},
	{"gibbs", "Gibbs coloured", nil},
}

func isingModel(side int, coupling, field float64) (*pairwise.Model, error) {
	g, err := graph.Lattice([]int{side, side}, coupling, true)
	if err != nil {
		return nil, err
	}
	return pairwise.Ising(g, field)
}

func runIsing(ctx context.Context, s Settings) (*Result, error) {
	// The paper's U = a·xᵀWx + b·Σx with a = 0.1, b = 0.2, in which every pair counts twice.
	side, steps, chains, truth := 20, 1000, 32, 20_000
	couplings := []float64{0.1, 0.2, 0.3, 0.4407, 0.5}
	if s.Quick {
		side, steps, chains, truth, couplings = 5, 80, 10, 800, []float64{0.2}
	}
	out := &Result{Header: []string{"part", "sampler", "coupling", "step_size", "step", "seconds", "acceptance", "sites_changed", "log_rmse", "ess_per_1000_evaluations", "ess_per_second"}}
	e, err := isingModel(side, 0.2, 0.2)
	if err != nil {
		return nil, err
	}
	mean, err := siteMeans(ctx, e, truth, s.Seed+9)
	if err != nil {
		return nil, err
	}
	total := len(isingSamplers) + len(isingSteps) + len(couplings)
	moves := Figure{Name: "moves", Title: "DMALA on an Ising lattice", X: "step size", Y: "sites changed in a step", LogX: true, LogY: true}
	accepted := Figure{Name: "acceptance", Title: moves.Title, X: moves.X, Y: "acceptance", LogX: true}
	hops, acceptance, bold := Line{Name: "DMALA"}, Line{Name: "DMALA"}, 0.0
	for k, alpha := range isingSteps {
		s.progress(fmt.Sprintf("step size %g", alpha), k, total)
		run, err := runLattice(ctx, e, "dmala", samplers.Settings{"step-size": short(alpha)}, steps/2, chains, s.Seed, nil)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, []string{"moves", "dmala", "0.2", short(alpha), "", "", short(run.acceptance), short(run.hops), "", "", ""})
		if run.hops > 0 {
			hops.X, hops.Y = append(hops.X, alpha), append(hops.Y, run.hops)
			acceptance.X, acceptance.Y = append(acceptance.X, alpha), append(acceptance.Y, run.acceptance)
		}
		if run.hops >= 5 && run.acceptance > bold {
			bold = run.acceptance
		}
	}
	moves.Lines, accepted.Lines = []Line{hops}, []Line{acceptance}
	errorFigure := Figure{Name: "error", Title: fmt.Sprintf("Ising lattice %dx%d, coupling 0.2, field 0.2, %d chains", side, side, chains), X: "step", Y: "log RMSE of the means of sites", LogX: true}
	timeFigure := errorFigure
	timeFigure.Name, timeFigure.X = "error-seconds", "processor seconds"
	last := map[string]float64{}
	for k, x := range isingSamplers {
		s.progress(x.label, len(isingSteps)+k, total)
		run, err := runLattice(ctx, e, x.name, x.set, steps, chains, s.Seed, &mean)
		if err != nil {
			return nil, err
		}
		line := Line{Name: x.label, X: run.at, Y: run.logRMSE}
		for j := range run.at {
			out.Rows = append(out.Rows, []string{"error", x.label, "0.2", x.set["step-size"], short(run.at[j]), short(run.seconds[j]), short(run.acceptance), short(run.hops), short(run.logRMSE[j]), "", ""})
			last[x.label] = run.logRMSE[j]
		}
		errorFigure.Lines = append(errorFigure.Lines, line)
		timeFigure.Lines = append(timeFigure.Lines, Line{Name: x.label, X: run.seconds, Y: run.logRMSE})
	}
	essFigure := Figure{Name: "ess", Title: fmt.Sprintf("Ising lattice %dx%d without a field; critical coupling 0.4407", side, side), X: "coupling", Y: "effective draws a processor second", LogY: true}
	ess, perEvaluation := map[string]*Line{}, map[string][]float64{}
	for k, coupling := range couplings {
		s.progress(fmt.Sprintf("coupling %g", coupling), len(isingSteps)+len(isingSamplers)+k, total)
		model, err := isingModel(side, coupling, 0)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"gwg", "dmala", "pas", "tempering"} {
			run, err := runLattice(ctx, model, name, nil, steps/2, 8, s.Seed, nil)
			if err != nil {
				return nil, err
			}
			if ess[name] == nil {
				ess[name] = &Line{Name: name}
			}
			ess[name].X, ess[name].Y = append(ess[name].X, coupling), append(ess[name].Y, run.essPerSecond)
			perEvaluation[name] = append(perEvaluation[name], run.ess)
			out.Rows = append(out.Rows, []string{"ess", name, short(coupling), "tuned", "", "", short(run.acceptance), short(run.hops), "", short(run.ess), short(run.essPerSecond)})
		}
	}
	for _, name := range []string{"gwg", "dmala", "pas", "tempering"} {
		essFigure.Lines = append(essFigure.Lines, *ess[name])
	}
	out.Figures = []Figure{moves, accepted, errorFigure, timeFigure, essFigure}
	out.Claims = []Claim{
		{"DMALA changes five sites or more in a step and still accepts half of them", fmt.Sprintf("acceptance %.2f", bold), bold > 0.45},
		{"by steps DMALA has the least error of one-site Gibbs, GWG, LB-1 and DULA", fmt.Sprintf("log RMSE %.2f; Gibbs %.2f, GWG %.2f, LB-1 %.2f, DULA %.2f", last["DMALA"], last["Gibbs one site"], last["GWG"], last["LB-1"], last["DULA"]),
			last["DMALA"] < min(last["Gibbs one site"], last["GWG"], last["LB-1"], last["DULA"])},
		{"DMALA makes more effective draws per evaluation than GWG at coupling " + short(couplings[0]), fmt.Sprintf("%.3g and %.3g per 1000", perEvaluation["dmala"][0], perEvaluation["gwg"][0]), perEvaluation["dmala"][0] > perEvaluation["gwg"][0]},
	}
	return out, nil
}

// isingSteps are the step sizes of figure 2.
var isingSteps = []float64{0.4, 0.8, 1.2, 1.6, 2.4, 3.2}

// siteMeans estimates the mean of every spin by coloured Gibbs: all are equal by symmetry.
func siteMeans(ctx context.Context, e *pairwise.Model, sweeps int, seed uint64) (float64, error) {
	k, err := samplers.NewGibbs(e, samplers.GibbsOptions{})
	if err != nil {
		return 0, err
	}
	sum, n := 0.0, 0.0
	_, err = samplers.Run(ctx, samplers.Config{Kernel: k, Chains: 8, Warmup: 100, Steps: sweeps / 8, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			if s.Warmup {
				return nil
			}
			for _, v := range s.X.Codes {
				sum += float64(2*v - 1)
			}
			n += float64(len(s.X.Codes))
			return nil
		}),
	}})
	return sum / n, err
}

// latticeRun is what one run found. ess is for 1000 evaluations.
type latticeRun struct {
	acceptance, hops, ess, essPerSecond float64
	at, seconds, logRMSE                []float64
}

// runLattice runs a sampler. With a mean it measures, from the first step on, the error of the
// means of all sites over the chain so far, averaged over sites and chains.
func runLattice(ctx context.Context, e *pairwise.Model, name string, set samplers.Settings, steps, chains int, seed uint64, mean *float64) (*latticeRun, error) {
	k, err := samplers.New(name, e, set)
	if err != nil {
		return nil, err
	}
	warmup := 0
	if mean == nil {
		warmup = steps / 2
	}
	sums, u := make([]float64, chains*e.Space().Sites), make([][]float64, chains)
	run, next, made, before := &latticeRun{}, 10.0, 0.0, int64(0)
	clock, start := newClock(), 0.0
	watch := samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
		if s.Step <= int64(warmup) {
			before, start = s.Evaluations.Total(), clock()
			return nil
		}
		for c := range chains {
			u[c] = append(u[c], s.U[c])
		}
		if mean == nil {
			return nil
		}
		for j, v := range s.X.Codes {
			sums[j] += float64(2*v - 1)
		}
		if made++; made >= next || int(made) == steps {
			square := 0.0
			for _, t := range sums {
				square += (t/made - *mean) * (t/made - *mean)
			}
			run.at, run.seconds = append(run.at, made), append(run.seconds, clock())
			run.logRMSE = append(run.logRMSE, math.Log(square/float64(len(sums)))/2)
			next = math.Ceil(next * 1.5)
		}
		return nil
	})
	r, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Warmup: warmup, Steps: steps, Seed: seed, Observers: []samplers.Observer{watch}})
	if err != nil {
		return nil, err
	}
	seconds := clock() - start
	for c := range chains {
		run.acceptance += r.Acceptance[c] / float64(chains)
		run.hops += r.Hops[c] / float64(chains)
	}
	draws := diag.ESSBulk(u)
	run.ess, run.essPerSecond = 1000*draws/float64(r.State.Evaluations.Total()-before), draws/seconds
	return run, nil
}
