package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/internal/facility"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

// facilityLocation anneals SGDLD and its ablations on facility location with stochastic demands, beside stochastic
// local search and plans that HiGHS found for averages of a few demands.
var facilityLocation = Experiment{
	Name:  "facility",
	Doc:   "facility location with stochastic demands: cost of the best plan by SGDLD, its ablations, local search and HiGHS",
	Paper: "Sun, Dai, Dai, Zhou, Schuurmans 2023, section 6.3, table 1",
	Files: "plans that scripts/facility/solve.py found for the problems that this experiment writes to --out",
	many:  true,
	run:   runFacility,
}

// facilitySize is a size of the paper, its first temperature, and its table 1: cost and seconds by method.
type facilitySize struct {
	facilities, customers int
	temperature           float64
	paper                 map[string][2]float64
}

func (s facilitySize) String() string { return fmt.Sprintf("%dx%d", s.facilities, s.customers) }

var facilitySizes = []facilitySize{
	{15, 30, 200, map[string][2]float64{"highs-8": {10418, 2}, "highs-1024": {10152, 103}, "sls": {9981, 16}, "sgdld-noC": {9870, 15}, "sgdld": {9792, 15}}},
	{40, 120, 500, map[string][2]float64{"highs-8": {29390, 256}, "highs-1024": {26137, 3342}, "sls": {26514, 25}, "sgdld-noC": {25773, 25}, "sgdld": {25398, 26}}},
	{100, 400, 1000, map[string][2]float64{"highs-8": {73342, 3502}, "highs-1024": {68924, 3621}, "sls": {73849, 91}, "sgdld-noC": {67532, 96}, "sgdld": {66395, 98}}},
}

// paperSteps is the number of steps over which the paper cools by 0.999 a step. With fewer steps the schedules pass
// through the same temperatures and Polyak steps.
const paperSteps = 10_000

// evaluation is the number of fresh demands by which plans are chosen, and of others by which they are compared.
const evaluation = 10_000

// locator is a method on one problem: it returns the last states of its chains.
type locator func(ctx context.Context, p *facility.Problem, r facilityRun) ([][]int32, error)

// facilityRun is what the methods have in common.
type facilityRun struct {
	temperature   float64
	chains, steps int
	seed          uint64
}

// found is the plan of a method for one problem.
type found struct {
	size     facilitySize
	instance int
	method   string
	plan     facility.Plan
	seconds  float64
}

func runFacility(ctx context.Context, s Settings) (*Result, error) {
	sizes, instances, chains, steps, demands := facilitySizes, 5, 100, paperSteps, evaluation
	if s.Quick {
		sizes, instances, chains, steps, demands = []facilitySize{{5, 10, 200, nil}, {8, 20, 200, nil}}, 2, 8, 150, 1000
	}
	instances, chains, steps = cmp.Or(s.Instances, instances), cmp.Or(s.Chains, chains), cmp.Or(s.Steps, steps)
	if s.Size != "" {
		sizes = slices.DeleteFunc(slices.Clone(sizes), func(z facilitySize) bool { return z.String() != s.Size })
		if len(sizes) == 0 {
			return nil, &UsageError{"size " + s.Size + ": want 15x30, 40x120 or 100x400"}
		}
	}
	methods := []struct {
		name string
		run  locator
	}{{"sls", searchLocally}, {"sgdld-noP", jumpFacilities(samplers.Settings{"fixed-step": ""})}, {"sgdld-noC", jumpFacilities(samplers.Settings{"no-cache": "true"})}, {"sgdld", jumpFacilities(nil)}}
	out := &Result{Files: map[string][]byte{}, Header: []string{"size", "instance", "method", "cost", "standard_error", "open", "seconds"}}
	var all []found
	add := func(f found) error {
		all = append(all, f)
		out.Rows = append(out.Rows, []string{f.size.String(), fmt.Sprint(f.instance), f.method, fmt.Sprintf("%.0f", f.plan.Cost), fmt.Sprintf("%.0f", f.plan.Error), fmt.Sprint(len(f.plan.Open)), fmt.Sprintf("%.0f", f.seconds)})
		return s.save(out)
	}
	for z, size := range sizes {
		for instance := range instances {
			p, err := facility.Simulate(size.facilities, size.customers, s.Seed+uint64(instance))
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("facility-%s-%d", size, instance)
			if out.Files[name+".json"], err = json.Marshal(p); err != nil {
				return nil, err
			}
			for k, m := range methods {
				s.progress(fmt.Sprintf("%s on %s", m.name, name), (z*instances+instance)*len(methods)+k, len(sizes)*instances*len(methods))
				clock := newClock()
				states, err := m.run(ctx, p, facilityRun{size.temperature, chains, steps, s.Seed + uint64(instance)})
				if err != nil {
					return nil, err
				}
				seconds, plans := clock(), p.Plans(states, demands, s.Seed, 0)
				best := slices.MinFunc(plans, func(a, b facility.Plan) int { return cmp.Compare(a.Cost, b.Cost) })
				if err := add(found{size, instance, m.name, p.Plans([][]int32{p.State(best)}, demands, s.Seed, 1)[0], seconds}); err != nil {
					return nil, err
				}
			}
			others, err := readPlans(s.Files, name, p, demands, s.Seed)
			if err != nil {
				return nil, err
			}
			for _, f := range others {
				f.size, f.instance = size, instance
				if err := add(f); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, size := range sizes {
		out.Claims = append(out.Claims, facilityClaims(size, all)...)
	}
	return out, nil
}

// facilityClaims says whether SGDLD has the least mean cost at a size, and less than its ablation.
func facilityClaims(size facilitySize, all []found) []Claim {
	costs := map[string][]float64{} // [instance]
	var names []string
	for _, f := range all {
		if f.size.String() == size.String() {
			if costs[f.method] == nil {
				names = append(names, f.method)
			}
			costs[f.method] = append(costs[f.method], f.plan.Cost)
		}
	}
	mean := func(name string) float64 {
		sum := 0.0
		for _, c := range costs[name] {
			sum += c / float64(len(costs[name]))
		}
		return sum
	}
	var figures []string
	least := math.Inf(1)
	for _, name := range names {
		text := fmt.Sprintf("%s %.0f", name, mean(name))
		if paper, known := size.paper[name]; known {
			text += fmt.Sprintf(" (paper %.0f)", paper[0])
		}
		if figures = append(figures, text); name != "sgdld" {
			least = min(least, mean(name))
		}
	}
	return []Claim{
		{fmt.Sprintf("at %s SGDLD has the least mean cost of %d instances", size, len(costs["sgdld"])), strings.Join(figures, ", "), mean("sgdld") < least},
		{fmt.Sprintf("at %s it costs less than without the cache", size), fmt.Sprintf("%.0f and %.0f", mean("sgdld"), mean("sgdld-noC")), mean("sgdld") < mean("sgdld-noC")},
	}
}

// jumpFacilities anneals sgdld with minibatches of one demand. A fixed step is that which Polyak's rule takes in
// the mean of logarithms, over the steps of a few chains.
func jumpFacilities(set samplers.Settings) locator {
	return func(ctx context.Context, p *facility.Problem, r facilityRun) ([][]int32, error) {
		stretch := float64(r.steps) / paperSteps
		all := samplers.Settings{"batch": "1", "polyak": fmt.Sprintf("decay:%g,%g,0.3", 1000*stretch, 100*stretch)}
		for name, value := range set {
			all[name] = value
		}
		if _, fixed := set["fixed-step"]; fixed {
			delete(all, "fixed-step")
			few := r
			few.chains = min(r.chains, 4)
			_, logStep, err := annealFacilities(ctx, p, few, all)
			if err != nil {
				return nil, err
			}
			delete(all, "polyak")
			all["fixed-step"] = fmt.Sprint(math.Exp(logStep))
		}
		states, _, err := annealFacilities(ctx, p, r, all)
		return states, err
	}
}

// annealFacilities returns the last states of a run, and the mean logarithm of its time steps.
func annealFacilities(ctx context.Context, p *facility.Problem, r facilityRun, set samplers.Settings) ([][]int32, float64, error) {
	e, err := facility.New(p, r.temperature, 1<<20, r.seed)
	if err != nil {
		return nil, 0, err
	}
	k, err := samplers.New("sgdld", e, set)
	if err != nil {
		return nil, 0, err
	}
	logStep := 0.0
	result, err := samplers.Run(ctx, samplers.Config{
		Kernel: k, Chains: r.chains, Steps: r.steps, Seed: r.seed,
		InverseTemperature: func(step int64) float64 { return math.Pow(0.999, -float64(step+1)*paperSteps/float64(r.steps)) },
		Observers: []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			for _, w := range s.Var(samplers.WeightVar) {
				logStep += math.Log(w) / float64(r.chains*r.steps)
			}
			return nil
		})},
	})
	if err != nil {
		return nil, 0, err
	}
	states := make([][]int32, r.chains)
	for c := range states {
		states[c] = result.State.X.Chain(c)
	}
	return states, logStep, nil
}

const useLocalSearch uint32 = 6

// searchLocally is the paper's stochastic local search: SGDLD's procedure with its cache, where a step makes the change
// of one site that costs least, if it costs less than staying.
func searchLocally(ctx context.Context, p *facility.Problem, r facilityRun) ([][]int32, error) {
	e, err := facility.New(p, r.temperature, 1<<20, r.seed)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, r.chains)
	for c := range ids {
		ids[c] = int64(c)
	}
	x, means, states := samplers.RandomCodes(e.Space(), r.seed, ids), facility.NewMeans(p, r.chains), make([][]int32, r.chains)
	energies.Parallel(r.chains, r.chains*r.steps*len(x.Codes), func(_, lo, hi int) {
		var stream rng.Stream
		demands := make([]float64, p.Customers())
		for c := lo; c < hi; c++ {
			state, mean := x.Chain(c), &means[c]
			states[c] = state
			mean.Reset(state)
			for step := 0; step < r.steps && ctx.Err() == nil; step++ {
				stream.Reset(r.seed, int64(c), int64(step), useLocalSearch)
				e.Demands(demands, int32(stream.IntN(1<<20)))
				mean.Add(demands)
				if i, v, change := mean.Steepest(); change < 0 {
					state[i] = v
					mean.Reset(state)
				}
			}
		}
	})
	return states, ctx.Err()
}

func readPlans(files []string, problem string, p *facility.Problem, demands int, seed uint64) ([]found, error) {
	var list []found
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var plans []struct {
			Problem, Method string
			Seconds         float64
			facility.Plan
		}
		if err := json.Unmarshal(text, &plans); err != nil {
			return nil, &UsageError{fmt.Sprintf("%s: %v; want what scripts/facility/solve.py writes", path, err)}
		}
		for _, plan := range plans {
			if plan.Problem != problem {
				continue
			}
			state := p.State(plan.Plan)
			if state == nil {
				return nil, &UsageError{fmt.Sprintf("%s: the plan for %s is of another problem", path, problem)}
			}
			list = append(list, found{method: plan.Method, plan: p.Plans([][]int32{state}, demands, seed, 1)[0], seconds: plan.Seconds})
		}
	}
	return list, nil
}
