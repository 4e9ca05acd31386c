package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/rbm"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/ebm"
)

// rbmSamples trains an RBM by contrastive divergence and compares states of samplers with those of
// block Gibbs between its layers. The Hamming ball sampler of the paper is left out.
var rbmSamples = Experiment{
	Name:  "rbm",
	Doc:   "samples of a restricted Boltzmann machine: distance (MMD) from block Gibbs against steps and seconds",
	Paper: "Zhang, Liu and Liu 2022, section 7.2 and figures 4 and 8",
	Files: "images of 28x28 pixels to train on, as MNIST's train-images-idx3-ubyte.gz, instead of generated bars",
	run:   runRBM,
}

// machineSamplers have the step sizes of appendix I.3.
var machineSamplers = []struct {
	label, name string
	set         samplers.Settings
}{
	{"Gibbs-1", "gibbs", samplers.Settings{"updates": "1"}},
	{"GWG-1", "gwg", nil},
	{"DULA", "dula", samplers.Settings{"step-size": "0.1"}},
	{"DMALA", "dmala", samplers.Settings{"step-size": "0.2"}},
}

// blockGibbs is the label of coloured Gibbs on the joint form.
const blockGibbs = "block Gibbs"

func runRBM(ctx context.Context, s Settings) (*Result, error) {
	side, hidden, updates, chains, truth, burn, steps := 28, 500, 600, 64, 200, 300, 500
	if s.Quick {
		side, hidden, updates, chains, truth, burn, steps = 6, 16, 200, 20, 100, 100, 100
	}
	m, data, err := trainMachine(ctx, s, side, hidden, updates)
	if err != nil {
		return nil, err
	}
	joint, d := m.Joint(), side*side
	s.progress("exact draws by block Gibbs", 1, len(machineSamplers)+3)
	exact, err := lastStates(ctx, joint, truth, burn, s.Seed+1)
	if err != nil {
		return nil, err
	}
	exact = visible(exact, joint.Space().Sites, d)
	out := &Result{Header: []string{"sampler", "step", "seconds", "log_mmd", "acceptance", "sites_changed"}}
	bySteps := Figure{Name: "steps", Title: fmt.Sprintf("RBM of %d sites and %d hidden units, %d chains", d, hidden, chains), X: "step", Y: "log MMD from block Gibbs", LogX: true}
	bySeconds := bySteps
	bySeconds.Name, bySeconds.X = "seconds", "processor seconds"
	grids := []Figure{grid("data", m, data[:d*min(len(data)/d, chains)], side)}
	last := map[string]float64{}
	all := append(machineSamplers[:len(machineSamplers):len(machineSamplers)], struct {
		label, name string
		set         samplers.Settings
	}{blockGibbs, "gibbs", nil})
	for k, x := range all {
		s.progress(x.label, k+2, len(all)+2)
		e := energies.Energy(joint)
		if x.label != blockGibbs {
			e = m
		}
		run, err := machineRun(ctx, e, x.name, x.set, exact, d, chains, steps, s.Seed)
		if err != nil {
			return nil, err
		}
		for j, step := range run.step {
			out.Rows = append(out.Rows, []string{x.label, short(step), short(run.seconds[j]), short(run.mmd[j]), short(run.acceptance), short(run.hops)})
			last[x.label] = run.mmd[j]
		}
		bySteps.Lines = append(bySteps.Lines, Line{Name: x.label, X: run.step, Y: run.mmd})
		bySeconds.Lines = append(bySeconds.Lines, Line{Name: x.label, X: run.seconds, Y: run.mmd})
		grids = append(grids, grid(x.name+map[bool]string{true: "-block"}[x.label == blockGibbs], m, run.last, side))
	}
	out.Figures = append([]Figure{bySteps, bySeconds}, grids...)
	figures := fmt.Sprintf("log MMD %.2f; DULA %.2f, GWG %.2f, Gibbs %.2f, block Gibbs %.2f", last["DMALA"], last["DULA"], last["GWG-1"], last["Gibbs-1"], last[blockGibbs])
	out.Claims = []Claim{
		{"DULA and DMALA come closer to block Gibbs in as many steps than GWG and Gibbs", figures, max(last["DULA"], last["DMALA"]) < min(last["GWG-1"], last["Gibbs-1"])},
		{fmt.Sprintf("DMALA has the lowest MMD of all but block Gibbs after %d steps", steps), figures, last["DMALA"] <= min(last["DULA"], last["GWG-1"], last["Gibbs-1"])},
	}
	return out, nil
}

// grid draws up to 36 states.
func grid(name string, m *rbm.Model, codes []int32, side int) Figure {
	codes = codes[:min(len(codes), 36*side*side)]
	return Figure{Name: name, Image: ebm.Enlarge(ebm.Grid(m.Space(), codes, side, side), 2)}
}

// visible drops the hidden units of states.
func visible(codes []int32, sites, d int) []int32 {
	var out []int32
	for lo := 0; lo < len(codes); lo += sites {
		out = append(out, codes[lo:lo+d]...)
	}
	return out
}

// lastStates returns the states of coloured Gibbs after so many sweeps.
func lastStates(ctx context.Context, e energies.Energy, chains, sweeps int, seed uint64) ([]int32, error) {
	k, err := samplers.NewGibbs(e, samplers.GibbsOptions{Scan: "coloured"})
	if err != nil {
		return nil, err
	}
	r, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: sweeps, Seed: seed})
	if err != nil {
		return nil, err
	}
	return r.State.X.Codes, nil
}

// machineCourse is what one run found.
type machineCourse struct {
	step, seconds, mmd []float64
	acceptance, hops   float64
	last               []int32 // [chain, site]
}

// machineRun runs a sampler and measures the MMD of its states from exact ones; time spent measuring
// is left out.
func machineRun(ctx context.Context, e energies.Energy, name string, set samplers.Settings, exact []int32, d, chains, steps int, seed uint64) (*machineCourse, error) {
	k, err := samplers.New(name, e, set)
	if err != nil {
		return nil, err
	}
	run, next, within := &machineCourse{}, 1.0, meanKernel(exact, exact, d)
	clock, paused := newClock(), 0.0
	r, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: steps, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			if float64(s.Step) < next && int(s.Step) != steps {
				return nil
			}
			now := clock()
			run.step, run.seconds = append(run.step, float64(s.Step)), append(run.seconds, now-paused)
			run.last = visible(s.X.Codes, s.X.Space.Sites, d)
			run.mmd = append(run.mmd, math.Log(meanKernel(run.last, run.last, d)+within-2*meanKernel(run.last, exact, d)))
			next = math.Ceil(next * 1.6)
			paused += clock() - now
			return nil
		}),
	}})
	if err != nil {
		return nil, err
	}
	for c := range chains {
		run.acceptance += r.Acceptance[c] / float64(chains)
		run.hops += r.Hops[c] / float64(chains)
	}
	return run, nil
}

// meanKernel is the mean of exp(-share of sites that differ) over pairs of states, [state, site]
// each (the kernel of Grathwohl et al. 2021, appendix F.2).
func meanKernel(x, y []int32, d int) float64 {
	sum := 0.0
	for a := 0; a < len(x); a += d {
		for b := 0; b < len(y); b += d {
			differ := 0
			for i, v := range x[a : a+d] {
				differ += int(v ^ y[b+i])
			}
			sum += math.Exp(-float64(differ) / float64(d))
		}
	}
	return sum / float64(len(x)/d) / float64(len(y)/d)
}
