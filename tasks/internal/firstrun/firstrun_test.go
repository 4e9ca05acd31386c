package firstrun

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// recorder is an energy that records what it is asked and answers U.
type recorder struct {
	space energies.Space
	u     float64
	asked []string
	x     energies.Batch
}

func (r *recorder) Space() *energies.Space { return &r.space }

func (r *recorder) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	return r.record("U", u, x)
}

func (r *recorder) LogDensityGrad(_ context.Context, u []float64, _ []float32, x energies.Batch) error {
	return r.record("gradient", u, x)
}

func (r *recorder) record(what string, u []float64, x energies.Batch) error {
	r.asked, r.x = append(r.asked, what), x
	for c := range u {
		u[c] = r.u
	}
	return nil
}

// TestEvaluate: U and the gradient are asked, at different states in one batch, and NaN is an error.
func TestEvaluate(t *testing.T) {
	for u, wrong := range map[float64]bool{1: false, math.Inf(-1): false, math.Inf(1): true, math.NaN(): true} {
		r := &recorder{space: energies.Space{Sites: 20, Values: 2}, u: u}
		if err := Evaluate(t.Context(), r); wrong != (err != nil) {
			t.Errorf("U %g: %v", u, err)
		}
		if !wrong && !slices.Equal(r.asked, []string{"U", "gradient"}) {
			t.Errorf("U %g: asked %v", u, r.asked)
		}
		if r.x.Chains() < 2 || slices.Equal(r.x.Chain(0), r.x.Chain(1)) {
			t.Errorf("states %v", r.x.Codes)
		}
	}
}
