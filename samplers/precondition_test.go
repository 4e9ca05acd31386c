package samplers_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/samplers"
)

// TestFactors: given factors draw as the same factors of an adapted preconditioner do, whose law the
// suite proves; and wrong ones are refused.
func TestFactors(t *testing.T) {
	e, err := known.Parse("ising:2x2,0.3,0.2")
	if err != nil {
		t.Fatal(err)
	}
	factors := []float64{0.5, 2, 1, 3}
	var draws [2][]int32
	for k, o := range []samplers.DMALAOptions{{StepSize: 2, Factors: factors}, {StepSize: 2, Precondition: true}} {
		kernel, err := samplers.NewDMALA(e, o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := samplers.NewLoop(context.Background(), samplers.Config{Kernel: kernel, Chains: 1, Steps: 50, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		copy(l.State().Var(samplers.PreconditionerVar), factors)
		for !l.Done() {
			if err := l.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
			draws[k] = append(draws[k], l.State().X.Codes...)
		}
	}
	if !slices.Equal(draws[0], draws[1]) {
		t.Error("draws differ from those of a preconditioner with the same factors")
	}
	for _, o := range []samplers.DMALAOptions{{Factors: factors[:3]}, {Factors: []float64{1, 1, 0, 1}}, {Factors: []float64{1, 1, 1, math.Inf(1)}}, {Factors: factors, Precondition: true}} {
		var bad *samplers.OptionError
		if _, err := samplers.NewDMALA(e, o); !errors.As(err, &bad) || bad.Option != "Factors" {
			t.Errorf("factors %v: %v", o.Factors, err)
		}
	}
}
