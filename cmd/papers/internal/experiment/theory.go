package experiment

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/samplers"
)

// theory compares the stationary law of DULA with π on a lattice of 2 x 2 spins and on a family of laws
// of one spin: by its matrix of transition probabilities, and by draws.
var theory = Experiment{
	Name:  "theory",
	Doc:   "bias of DULA against its step size on a 2x2 Ising lattice, and against the distance of one spin's U from a quadratic",
	Paper: "Zhang, Liu and Liu 2022, theorems 5.1 and 5.2 and figure 1",
	run:   runTheory,
}

func runTheory(ctx context.Context, s Settings) (*Result, error) {
	// U = xᵀWx + bᵀx with W = coupling/2 between neighbours, whose least eigenvalue is -coupling.
	const coupling, field = 0.25, 0.1
	g, err := graph.Lattice([]int{2, 2}, coupling, false)
	if err != nil {
		return nil, err
	}
	e, err := pairwise.Ising(g, field)
	if err != nil {
		return nil, err
	}
	law, err := table.Enumerate(ctx, e)
	if err != nil {
		return nil, err
	}
	chains, steps := theoryDraws(s)
	alphas := []float64{0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 2.4}
	out := &Result{Header: []string{"epsilon", "step_size", "distance", "distance_of_draws", "noise_of_draws", "bound"}}
	lines := []Line{{Name: "DULA, by its transition matrix"}, {Name: "DULA, draws"}, {Name: "bound of theorem 5.1"}}
	falls, within, agree := true, true, true
	before := 0.0
	for k, alpha := range alphas {
		s.progress(fmt.Sprintf("step size %g", alpha), k, len(alphas)+1)
		// U is linear in each spin, so that the difference of U is the gradient's.
		exact := distance(stationary(law, alpha, func(k, flipped, _ int) float64 { return law.U[flipped] - law.U[k] }), law.P)
		bound := math.Exp(law.LogZ - (1-alpha*coupling)/(2*alpha))
		row, points := []string{"", short(alpha), short(exact), "", "", short(bound)}, []float64{exact, math.NaN(), bound}
		if alpha >= 0.6 { // below, a spin flips once in hundreds of steps or less, and noise is larger than the bias
			drawn, noise, err := drawnDistance(ctx, e, law, alpha, chains, steps, s.Seed)
			if err != nil {
				return nil, err
			}
			row[3], row[4], points[1] = short(drawn), short(noise), drawn
			agree = agree && math.Abs(drawn-exact) < 4*noise
		}
		out.Rows = append(out.Rows, row)
		for j, y := range points {
			if y > 0 {
				lines[j].X, lines[j].Y = append(lines[j].X, alpha), append(lines[j].Y, y)
			}
		}
		falls, within = falls && exact > before, within && exact <= bound
		before = exact
	}
	out.Figures = []Figure{{Name: "bias", Title: "bias of DULA, Ising lattice 2x2", X: "step size", Y: "distance in ℓ1 of the laws", LogX: true, LogY: true, Lines: lines}}
	out.Claims = []Claim{
		{"the bias of DULA falls with its step size", fmt.Sprintf("from %s at %g to %s at %g", out.Rows[len(alphas)-1][2], alphas[len(alphas)-1], out.Rows[0][2], alphas[0]), falls},
		{"the bias is below the bound of theorem 5.1 at every step size", fmt.Sprintf("at %g: %s, bound %s", alphas[0], out.Rows[0][2], out.Rows[0][5]), within},
		{"draws of the sampler have the law of the transition matrix", strconv.Itoa(chains*steps) + " draws a step size", agree},
	}
	s.progress("one spin", len(alphas), len(alphas)+1)
	return out, oneSpin(ctx, s, out)
}

func theoryDraws(s Settings) (chains, steps int) {
	if s.Quick {
		return 40, 200
	}
	return 400, 4000
}

// distance is ‖p - q‖₁.
func distance(p, q []float64) float64 {
	sum := 0.0
	for k := range p {
		sum += math.Abs(p[k] - q[k])
	}
	return sum
}

// stationary is the law that DULA leaves invariant, by powers of its transition matrix: site i
// flips with probability sigmoid(gain/2 - 4/(2α)). gain is what U gains, to first order, from state k
// to the state in which site i is flipped.
func stationary(law *table.Enumeration, alpha float64, gain func(k, flipped, i int) float64) []float64 {
	n, d := law.Len(), law.X.Space.Sites
	p, square := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	for k := range n {
		flip := make([]float64, d)
		for i := range flip {
			x := append([]int32(nil), law.X.Chain(k)...)
			x[i] = 1 - x[i]
			flip[i] = 1 / (1 + math.Exp(2/alpha-gain(k, law.Find(x), i)/2))
		}
		for to := range n {
			q := 1.0
			for i, move := range flip {
				if law.X.Chain(to)[i] == law.X.Chain(k)[i] {
					move = 1 - move
				}
				q *= move
			}
			p.Set(k, to, q)
		}
	}
	for range 60 { // squaring: 2^60 steps
		square.Mul(p, p)
		for k := range n {
			floats.Scale(1/floats.Sum(square.RawRowView(k)), square.RawRowView(k))
		}
		p, square = square, p
	}
	return p.RawRowView(0)
}

// drawnDistance estimates ‖π_α - π‖₁ from draws: signs of the differences come from one half of
// the chains and are applied to the other, so that noise does not add to the estimate. noise is
// its standard error, of which the chains' spread is the measure.
func drawnDistance(ctx context.Context, e energies.Energy, law *table.Enumeration, alpha float64, chains, steps int, seed uint64) (tv, noise float64, err error) {
	k, err := samplers.NewDULA(e, samplers.DULAOptions{StepSize: alpha})
	if err != nil {
		return 0, 0, err
	}
	n := law.Len()
	counts := make([]float64, chains*n)
	_, err = samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Warmup: 500, Steps: steps, Seed: seed, Observers: []samplers.Observer{
		samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			if s.Warmup {
				return nil
			}
			for c := range s.Chains() {
				counts[c*n+law.Find(s.X.Chain(c))] += 1 / float64(steps)
			}
			return nil
		}),
	}})
	if err != nil {
		return 0, 0, err
	}
	sign := func(first int) []float64 {
		mean := make([]float64, n)
		for c := first; c < chains; c += 2 {
			for x := range mean {
				mean[x] += counts[c*n+x] * 2 / float64(chains)
			}
		}
		for x := range mean {
			mean[x] = math.Copysign(1, mean[x]-law.P[x])
		}
		return mean
	}
	signs := [2][]float64{sign(1), sign(0)}
	sum, square := 0.0, 0.0
	for c := range chains {
		t := 0.0
		for x, p := range law.P {
			t += signs[c%2][x] * (counts[c*n+x] - p)
		}
		sum, square = sum+t, square+t*t
	}
	tv = sum / float64(chains)
	return tv, math.Sqrt(max(square/float64(chains)-tv*tv, 1e-300) / float64(chains)), nil
}
