package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
)

// allPairs runs every sampler that targets exp(U) on every energy of known form.
var allPairs = Experiment{
	Name:  "all-pairs",
	Doc:   "every exact sampler on every energy of known form: effective draws per evaluation and per second of processor time",
	Paper: "none: a page for choosing a sampler",
	run:   runAllPairs,
}

// pairEnergies are the energies, named as gradhop sample --energy has them.
var pairEnergies = []string{
	"bernoulli:100,0.2", "ising:10x10,0.2", "ising:10x10,0.4", "potts:8x8,3,0.6", "fhmm:20x5,1", "gaussian-bernoulli:4", "rbm:50x20,1", "logistic:12x200,1",
}

func runAllPairs(ctx context.Context, s Settings) (*Result, error) {
	list, warmup, steps, limit := pairEnergies, 500, 1500, 3.0
	if s.Quick {
		list, warmup, steps, limit = []string{"ising:4x4,0.3", "potts:3x3,3,0.6"}, 20, 40, 60.0
	}
	var names []string
	for _, name := range samplers.Names() {
		if r, err := samplers.Lookup(name); err == nil && r.Exact {
			names = append(names, name)
		}
	}
	out := &Result{Header: []string{"energy", "sampler", "steps", "acceptance", "sites_changed", "ess", "evaluations", "ess_per_1000_evaluations", "ess_per_second", "rhat"}}
	perSecond, perEvaluation := make([][]float64, len(names)), make([][]float64, len(names)) // [sampler][energy], NaN where there is none
	for k, text := range list {
		e, err := known.Parse(text)
		if err != nil {
			return nil, err
		}
		for j, name := range names {
			s.progress(name+" on "+text, k*len(names)+j, len(list)*len(names))
			p, err := runPair(ctx, e, name, warmup, steps, limit, s.Seed)
			var lacks *energies.UnsupportedError
			if errors.As(err, &lacks) {
				perSecond[j], perEvaluation[j] = append(perSecond[j], math.NaN()), append(perEvaluation[j], math.NaN())
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", name, text, err)
			}
			perSecond[j] = append(perSecond[j], p.ess/p.seconds)
			perEvaluation[j] = append(perEvaluation[j], 1000*p.ess/float64(p.evaluations))
			out.Rows = append(out.Rows, []string{strings.ReplaceAll(text, ",", " "), name, fmt.Sprint(p.steps), short(p.acceptance), short(p.hops), short(p.ess),
				fmt.Sprint(p.evaluations), short(1000 * p.ess / float64(p.evaluations)), short(p.ess / p.seconds), short(p.rhat)})
		}
	}
	used := func(rows [][]float64) *HeatMap { // without samplers that no energy serves
		m := &HeatMap{Columns: list}
		for j, row := range rows {
			if slices.ContainsFunc(row, func(v float64) bool { return !math.IsNaN(v) }) {
				m.Rows, m.Values = append(m.Rows, names[j]), append(m.Values, row)
			}
		}
		return m
	}
	out.Figures = []Figure{
		{Name: "second", Title: "effective draws a second of processor time, each column against its best", Map: used(perSecond)},
		{Name: "evaluation", Title: "effective draws per 1000 evaluations, each column against its best", Map: used(perEvaluation)},
	}
	for k, text := range list {
		best := 0
		for j, row := range perSecond {
			if row[k] > perSecond[best][k] || math.IsNaN(perSecond[best][k]) {
				best = j
			}
		}
		of := func(name string) float64 { return perSecond[slices.Index(names, name)][k] }
		out.Claims = append(out.Claims, Claim{"a sampler informed by U or its gradient makes more effective draws a second than rwm on " + text,
			fmt.Sprintf("best %s %.3g a second, dmala %.3g, rwm %.3g", names[best], perSecond[best][k], of("dmala"), of("rwm")), names[best] != "rwm"})
	}
	return out, nil
}

// pair is what one run found.
type pair struct {
	steps                  int
	acceptance, hops, rhat float64
	ess                    float64 // least of U and of the distance to a fixed state
	evaluations            int64
	seconds                float64
}

// runPair runs eight chains until steps or a limit in processor seconds is reached. Only what follows warm-up
// counts.
func runPair(ctx context.Context, e energies.Energy, name string, warmup, steps int, limit float64, seed uint64) (pair, error) {
	const chains = 8
	k, err := samplers.New(name, e, nil)
	if err != nil {
		return pair{}, err
	}
	fixed := samplers.RandomCodes(e.Space(), seed+1, []int64{0}).Codes
	u, far := make([][]float64, chains), make([][]float64, chains)
	clock, before := newClock(), int64(0)
	watch := samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
		if s.Step <= int64(warmup) {
			clock, before = newClock(), s.Evaluations.Total()
			return nil
		}
		for c := range chains {
			differ := 0
			for i, v := range s.X.Chain(c) {
				if v != fixed[i] {
					differ++
				}
			}
			u[c], far[c] = append(u[c], s.U[c]), append(far[c], float64(differ))
		}
		if clock() > limit {
			return samplers.ErrStop
		}
		return nil
	})
	r, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Warmup: warmup, Steps: steps, Seed: seed, Observers: []samplers.Observer{watch}})
	if err != nil {
		return pair{}, err
	}
	p := pair{steps: len(u[0]), evaluations: r.State.Evaluations.Total() - before, seconds: clock()}
	p.ess = min(diag.ESSBulk(u), diag.ESSBulk(far))
	p.rhat = max(diag.RHat(u), diag.RHat(far))
	for c := range chains {
		p.acceptance += r.Acceptance[c] / chains
		p.hops += r.Hops[c] / chains
	}
	return p, nil
}
