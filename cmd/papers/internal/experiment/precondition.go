package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// precondition runs DLP on the paper's two spins with one step size, and with one for each spin.
var precondition = Experiment{
	Name:  "precondition",
	Doc:   "two spins whose gradients differ by a factor of a million: one step size, and one a site",
	Paper: "Zhang, Liu and Liu 2022, appendix H",
	run:   runPrecondition,
}

// diagonal is U(θ) = Σ_i w_i·θ_i² over spins. It is constant, but the gradient of its quadratic
// extension, 2·w_i·θ_i, is not zero.
type diagonal struct {
	space *energies.Space
	w     []float64
}

func (e diagonal) Space() *energies.Space { return e.space }

func (e diagonal) LogDensity(_ context.Context, u []float64, _ energies.Batch) error {
	for c := range u {
		u[c] = 0
		for _, w := range e.w {
			u[c] += w
		}
	}
	return nil
}

func (e diagonal) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	for k, v := range x.Codes {
		slope := 2 * e.w[k%len(e.w)] * float64(e.space.Number(v))
		g[2*k], g[2*k+1] = float32(-slope), float32(slope)
	}
	return e.LogDensity(ctx, u, x)
}

func runPrecondition(ctx context.Context, s Settings) (*Result, error) {
	e := diagonal{&energies.Space{Sites: 2, Values: 2, Kind: energies.Spin}, []float64{-0.001, -1000}}
	chains, steps := 16, 250_000
	if s.Quick {
		chains, steps = 4, 2000
	}
	alphas := []float64{0.0003, 0.001, 0.003, 0.01, 0.1, 1, 10, 100, 1000}
	out := &Result{Header: []string{"preconditioned", "step_size", "log_rmse", "log_rmse_of_every_second_state"}}
	all, second := Line{Name: "one step size"}, Line{Name: "one step size, every second state"}
	best, bestSecond := math.Inf(1), math.Inf(1)
	for k, alpha := range alphas {
		s.progress(fmt.Sprintf("step size %g", alpha), k, len(alphas)+1)
		rmse, thinned, err := meanErrors(ctx, e, samplers.DULAOptions{StepSize: alpha}, chains, steps, s.Seed)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, []string{"no", short(alpha), short(rmse), short(thinned)})
		all.X, all.Y = append(all.X, alpha), append(all.Y, rmse)
		second.X, second.Y = append(second.X, alpha), append(second.Y, thinned)
		best, bestSecond = min(best, rmse), min(bestSecond, thinned)
	}
	s.progress("preconditioned", len(alphas), len(alphas)+1)
	rmse, thinned, err := meanErrors(ctx, e, samplers.DULAOptions{StepSize: 1, Factors: []float64{1000, 0.001}}, chains, steps, s.Seed)
	if err != nil {
		return nil, err
	}
	out.Rows = append(out.Rows, []string{"yes", "1", short(rmse), short(thinned)})
	ends := []float64{alphas[0], alphas[len(alphas)-1]}
	out.Figures = []Figure{{Name: "error", Title: "U = θᵀWθ, W = diag(-0.001, -1000), by DLP", X: "step size", Y: "log RMSE of the means of sites", LogX: true,
		Lines: []Line{all, second, {Name: "preconditioned", X: ends, Y: []float64{rmse, rmse}}, {Name: "preconditioned, every second state", X: ends, Y: []float64{thinned, thinned}}}}}
	independent := -math.Log(float64(steps)) / 2 // of as many independent draws
	out.Claims = []Claim{
		{"preconditioned, the chain mixes quickly: the log RMSE is that of independent draws (the paper has -6.2)", fmt.Sprintf("%.2f; of %d independent draws %.2f", rmse, steps, independent), math.Abs(rmse-independent) < 1},
		{"with any one step size the log RMSE is about -0.34 or more", fmt.Sprintf("least %.2f: at large step sizes the second spin flips in every step, so that its mean is right", best), best > -0.4},
		{"with any one step size the log RMSE of every second state is about -0.34 or more", fmt.Sprintf("least %.2f, preconditioned %.2f", bestSecond, thinned), bestSecond > -0.4 && thinned < -1},
	}
	return out, nil
}

// meanErrors returns the log RMSE of the means of sites, which are zero, over chains and sites: of
// all states, and of every second one.
func meanErrors(ctx context.Context, e energies.Energy, o samplers.DULAOptions, chains, steps int, seed uint64) (all, second float64, err error) {
	k, err := samplers.NewDULA(e, o)
	if err != nil {
		return 0, 0, err
	}
	sums, even := make([]float64, chains*e.Space().Sites), make([]float64, chains*e.Space().Sites)
	_, err = samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: steps, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			for j, v := range s.X.Codes {
				t := float64(s.X.Space.Number(v))
				if sums[j] += t; s.Step%2 == 0 {
					even[j] += 2 * t
				}
			}
			return nil
		}),
	}})
	squares := func(sums []float64) float64 {
		total := 0.0
		for _, t := range sums {
			total += t * t / float64(steps) / float64(steps)
		}
		return math.Log(total/float64(len(sums))) / 2
	}
	return squares(sums), squares(even), err
}
