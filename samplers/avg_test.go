package samplers

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// TestLinearEnergyRejectsNothing: for U linear in the state, AVG accepts all.
func TestLinearEnergyRejectsNothing(t *testing.T) {
	for _, kind := range []energies.Kind{energies.Binary, energies.Categorical, energies.Ordinal} {
		values := 4
		if kind == energies.Binary {
			values = 2
		}
		e := newSiteFields(&energies.Space{Sites: 6, Values: values, Kind: kind}, 3)
		r, err := Run(context.Background(), Config{Kernel: kernel(t, "avg", e, nil), Chains: 4, Steps: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Acceptance {
			if math.Abs(a-1) > 1e-6 {
				t.Errorf("%s: acceptance %v", kind, a)
			}
		}
	}
}
