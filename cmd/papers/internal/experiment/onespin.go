package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/table"
)

// wave is the paper's family U(θ) = aθ² + bθ + 2ε·sin(θπ/2) of one spin, θ = ±1. Its gradient
// 2aθ + b + επ·cos(θπ/2) does not depend on ε there, though U does.
type wave struct {
	space      *energies.Space
	a, b, much float64 // much is ε
}

func (e wave) Space() *energies.Space { return e.space }

func (e wave) slope(theta float64) float64 {
	return 2*e.a*theta + e.b + e.much*math.Pi*math.Cos(theta*math.Pi/2)
}

func (e wave) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c, v := range x.Codes {
		theta := float64(e.space.Number(v))
		u[c] = e.a*theta*theta + e.b*theta + 2*e.much*math.Sin(theta*math.Pi/2)
	}
	return nil
}

func (e wave) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	for c, v := range x.Codes {
		slope := e.slope(float64(e.space.Number(v)))
		g[2*c], g[2*c+1] = float32(-slope), float32(slope)
	}
	return e.LogDensity(ctx, u, x)
}

// oneSpin adds figure 1b to out: the bias of DULA on the family against ε, for two step sizes. At ε = 0
// it has the bound of theorem 5.1; theorem 5.2 names no constants with which to draw its own.
func oneSpin(ctx context.Context, s Settings, out *Result) error {
	const drawn = 2.4 // step size of the draws: at 0.4 a spin flips once in 150 steps
	chains, steps := theoryDraws(s)
	epsilons := []float64{0, 0.05, 0.1, 0.2, 0.4, 0.8}
	figure := Figure{Name: "family", Title: "bias of DULA, U = aθ² + bθ + 2ε sin(θπ/2), one spin", X: "ε", Y: "distance in ℓ1 of the laws"}
	falls, within, agree := true, true, true
	for _, alpha := range []float64{0.4, drawn} {
		exactLine, drawsLine := Line{Name: fmt.Sprintf("step size %g, by the transition matrix", alpha)}, Line{Name: fmt.Sprintf("step size %g, draws", alpha)}
		before := -1.0
		for _, epsilon := range epsilons {
			e := wave{&energies.Space{Sites: 1, Values: 2, Kind: energies.Spin}, 0.1, 0.2, epsilon}
			law, err := table.Enumerate(ctx, e)
			if err != nil {
				return err
			}
			exact := distance(stationary(law, alpha, func(k, flipped, _ int) float64 {
				from, to := float64(e.space.Number(law.X.Codes[k])), float64(e.space.Number(law.X.Codes[flipped]))
				return e.slope(from) * (to - from)
			}), law.P)
			row := []string{short(epsilon), short(alpha), short(exact), "", "", ""}
			if epsilon == 0 {
				bound := math.Exp(law.LogZ - (1+alpha*e.a)/(2*alpha))
				row[5], within = short(bound), within && exact <= bound
			}
			if alpha == drawn {
				measured, noise, err := drawnDistance(ctx, e, law, alpha, chains, steps, s.Seed)
				if err != nil {
					return err
				}
				row[3], row[4], agree = short(measured), short(noise), agree && math.Abs(measured-exact) < 4*noise
				drawsLine.X, drawsLine.Y = append(drawsLine.X, epsilon), append(drawsLine.Y, measured)
			}
			exactLine.X, exactLine.Y = append(exactLine.X, epsilon), append(exactLine.Y, exact)
			out.Rows = append(out.Rows, row)
			falls, before = falls && exact > before, exact
		}
		figure.Lines = append(figure.Lines, exactLine)
		if len(drawsLine.X) > 0 {
			figure.Lines = append(figure.Lines, drawsLine)
		}
	}
	out.Figures = append(out.Figures, figure)
	y := figure.Lines[0].Y
	out.Claims = append(out.Claims,
		Claim{"on the family of one spin the bias of DULA falls with ε", fmt.Sprintf("at step size 0.4 from %.3g at ε = %g to %.3g at 0", y[len(y)-1], epsilons[len(epsilons)-1], y[0]), falls},
		Claim{"at ε = 0 it is below the bound of theorem 5.1", "step sizes 0.4 and 2.4", within},
		Claim{"draws have the law of the transition matrix there too", fmt.Sprintf("%d draws for each ε", chains*steps), agree})
	return nil
}
