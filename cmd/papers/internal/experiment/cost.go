package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/samplers"
)

// cost times steps on lattices of up to a million sites, and of up to a thousand chains.
var cost = Experiment{
	Name:  "cost",
	Doc:   "processor seconds of a step on Ising lattices against sites, up to a million, and against chains",
	Paper: "none: the cost should be linear in both",
	run:   runCost,
}

var costSamplers = []string{"gibbs", "dula", "dmala", "gwg"}

func runCost(ctx context.Context, s Settings) (*Result, error) {
	sides, chains, blocks := []int{10, 32, 100, 316, 1000}, []int{1, 10, 100, 1000}, 10
	if s.Quick {
		sides, chains, blocks = []int{10, 20}, []int{1, 4}, 3
	}
	out := &Result{Header: []string{"sampler", "sites", "chains", "seconds", "nanoseconds_of_a_site"}}
	bySites := Figure{Name: "sites", Title: "a step of one chain on an Ising lattice", X: "sites", Y: "processor seconds", LogX: true, LogY: true}
	byChains := Figure{Name: "chains", Title: "a step on an Ising lattice 20x20", X: "chains", Y: "processor seconds", LogX: true, LogY: true}
	measure := func(name string, side, chains int, line *Line, x int) error {
		seconds, err := stepTime(ctx, fmt.Sprintf("ising:%dx%d,0.3", side, side), name, chains, blocks, s.Seed)
		if err != nil {
			return err
		}
		sites := side * side
		out.Rows = append(out.Rows, []string{name, fmt.Sprint(sites), fmt.Sprint(chains), short(seconds), short(1e9 * seconds / float64(sites*chains))})
		line.X, line.Y = append(line.X, float64(x)), append(line.Y, seconds)
		return nil
	}
	for k, name := range costSamplers {
		s.progress(name, k, len(costSamplers))
		sitesLine, chainsLine := Line{Name: name}, Line{Name: name}
		for _, side := range sides {
			if err := measure(name, side, 1, &sitesLine, side*side); err != nil {
				return nil, err
			}
		}
		for _, n := range chains {
			if err := measure(name, 20, n, &chainsLine, n); err != nil {
				return nil, err
			}
		}
		bySites.Lines, byChains.Lines = append(bySites.Lines, sitesLine), append(byChains.Lines, chainsLine)
	}
	out.Figures = []Figure{bySites, byChains}
	for _, f := range out.Figures {
		worst, figures := 0.0, ""
		for _, line := range f.Lines {
			n := len(line.X) - 1
			first := n / 2 // smaller ones are dominated by what a step costs at any size
			exponent := math.Log(line.Y[n]/line.Y[first]) / math.Log(line.X[n]/line.X[first])
			worst = max(worst, exponent)
			figures += fmt.Sprintf("%s %.2f, ", line.Name, exponent)
		}
		out.Claims = append(out.Claims, Claim{"the cost of a step grows no faster than linearly with the number of " + f.Name,
			fmt.Sprintf("exponents over the upper half of the range: %sallowed 1.15", figures), worst < 1.15})
	}
	return out, nil
}

// stepTime returns the seconds of a step: the least of several blocks of steps, which other work on the
// machine disturbs least. A block lasts 5 milliseconds or one step.
func stepTime(ctx context.Context, energy, sampler string, chains, blocks int, seed uint64) (float64, error) {
	e, err := known.Parse(energy)
	if err != nil {
		return 0, err
	}
	k, err := samplers.New(sampler, e, nil)
	if err != nil {
		return 0, err
	}
	loop, err := samplers.NewLoop(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: 1 << 40, Seed: seed})
	if err != nil {
		return 0, err
	}
	steps, best := 1, math.Inf(1)
	for done := 0; done < blocks; {
		clock := newClock()
		for range steps {
			if err := loop.Step(ctx); err != nil {
				return 0, err
			}
		}
		seconds := clock()
		if best = min(best, seconds/float64(steps)); seconds < 5e-3 {
			steps *= 2
		} else {
			done++
		}
	}
	return best, nil
}
