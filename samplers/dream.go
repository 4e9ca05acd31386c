package samplers

import (
	"github.com/gradhop/gradhop/energies"
)

func init() {
	const paper = "Zheng, Du, Zhang, Lin 2026 (arXiv:2501.17323), algorithm 1, with the swap probability of its eq. 5"
	Register(Registration{
		Name:  "dream",
		Doc:   "dmala with a second, hotter replica that takes longer steps; the two swap states",
		Paper: paper,
		Tunes: "step-size,hot-step-size",
		Needs: energies.Gradient,
	}, newDREAM)
	Register(Registration{
		Name:  "drexel",
		Doc:   "dula with a second, hotter replica that takes longer steps; the two swap states",
		Paper: paper,
		Bias:  "near exp(U); the bias falls with the step sizes, as that of dula",
		Needs: energies.Gradient,
	}, newDREXEL)
}

const hotStepSizeVar = "hot_step_size"

type dreamOptions struct {
	// StepSize is α_1, that of the chain; 0 adapts both step sizes in warm-up as DMALA does.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"step size α of the Langevin proposal"`
	// HotStepSize is α_2, that of the hot replica, not below α_1; 0 means 2·α_1 where that is given.
	HotStepSize float64 `flag:"hot-step-size" default:"adapted in warm-up; twice the step size if that is given" doc:"step size of the hot replica"`
	// Hottest is τ_1/τ_2, the inverse temperature of the hot replica, below 1; 0 means 0.5.
	Hottest float64 `flag:"hottest" default:"0.5" doc:"lowest inverse temperature, below 1"`
	// SwapIntensity is ρ, the factor of the probability of a swap, up to 1, which 0 means.
	SwapIntensity float64 `flag:"swap-intensity" default:"1" doc:"factor of the probability of a swap, up to 1"`
	// Balance is that of DULAOptions.
	Balance string `flag:"balance" default:"sqrt" choices:"sqrt,barker,min,max" doc:"balancing function g of the probability ratio t of a move: √t, t/(1+t), min(1,t) or max(1,t)"`
}

// drexelOptions are those of DREAM, but no step size is adapted: 0 means that of DULA.
type drexelOptions struct {
	StepSize      float64 `flag:"step-size" default:"0.1 binary or ordinal, 0.2 categorical, 0.4 spin" doc:"step size α of the Langevin proposal"`
	HotStepSize   float64 `flag:"hot-step-size" default:"twice the step size" doc:"step size of the hot replica"`
	Hottest       float64 `flag:"hottest" default:"0.5" doc:"lowest inverse temperature, below 1"`
	SwapIntensity float64 `flag:"swap-intensity" default:"1" doc:"factor of the probability of a swap, up to 1"`
	Balance       string  `flag:"balance" default:"sqrt" choices:"sqrt,barker,min,max" doc:"balancing function g of the probability ratio t of a move: √t, t/(1+t), min(1,t) or max(1,t)"`
}

// newDREAM returns discrete replica exchange with adjusted Metropolis (Zheng et al. 2026) for e,
// which must have a gradient: tempering with two levels, at β_1 = 1 and β_2 = τ_1/τ_2, that DMALA
// moves with step sizes α_1 ≤ α_2. After each step they swap with probability
//
//	ρ·min(1, exp((β_1 - β_2)(U(x_2) - U(x_1)))),
//
// eq. 5 of the paper. Left out: its eq. 8, which subtracts the difference of U before the step from
// that after it, so that states that did not move swap with probability ρ whatever their U: it does
// not leave exp(U) invariant (enumerated on three spins, the chain is 0.06 to 0.13 in total variation
// from it). Left out too: eq. 7, for minibatches. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func newDREAM(e energies.Energy, o dreamOptions) (*tempering, error) {
	return buildDREAM("dream", e, o)
}

// newDREXEL returns discrete replica exchange Langevin (Zheng et al. 2026) for e: DREAM with DULA in
// place of DMALA, hence biased. Errors are those of newDREAM.
func newDREXEL(e energies.Energy, o drexelOptions) (*tempering, error) {
	if o.StepSize == 0 {
		o.StepSize = 0.1 * e.Space().SquaredDistance(0, 1)
	}
	return buildDREAM("drexel", e, dreamOptions(o))
}

func buildDREAM(name string, e energies.Energy, o dreamOptions) (*tempering, error) {
	bad := func(option string, value float64, reason string) (*tempering, error) {
		return nil, badOption(name, option, value, reason)
	}
	if o.Hottest == 0 {
		o.Hottest = 0.5
	}
	if o.SwapIntensity == 0 {
		o.SwapIntensity = 1
	}
	if o.HotStepSize == 0 {
		o.HotStepSize = 2 * o.StepSize
	}
	switch {
	case !(o.Hottest > 0 && o.Hottest < 1):
		return bad("hottest", o.Hottest, "must be above 0 and below 1")
	case !(o.SwapIntensity > 0 && o.SwapIntensity <= 1):
		return bad("swap-intensity", o.SwapIntensity, "must be above 0 and at most 1")
	case o.StepSize != 0 && checkPositive(name, "step-size", o.StepSize) != nil:
		return nil, checkPositive(name, "step-size", o.StepSize)
	case o.StepSize == 0 && o.HotStepSize != 0:
		return bad("hot-step-size", o.HotStepSize, "needs the option step-size")
	case !(o.HotStepSize >= o.StepSize):
		return bad("hot-step-size", o.HotStepSize, "must not be below the step size")
	}
	inner, err := newLangevin(name, e, DMALAOptions{StepSize: o.StepSize, Balance: o.Balance}, 0.2)
	if err != nil {
		return nil, err
	}
	k := newLadder(inner, []float64{1, o.Hottest}, false)
	if k.intensity, k.parities = o.SwapIntensity, 1; o.StepSize != 0 {
		k.steps = []float64{o.StepSize, o.HotStepSize}
	}
	k.recorded = []string{StepSizeVar, hotStepSizeVar}
	for _, name := range k.recorded {
		k.Specs = append(k.Specs, VarSpec{Name: name, Record: true, Derived: true})
	}
	return k, nil
}
