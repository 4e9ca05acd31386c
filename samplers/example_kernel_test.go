package samplers_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// neighbour proposes to move one uniform site up or down by one, cyclically.
type neighbour struct{}

func (neighbour) Draw(w *samplers.Worker, s *samplers.State, c int, next []int32) float64 {
	copy(next, s.X.Chain(c))
	n := int32(s.X.Space.Values)
	next[w.IntN(len(next))] += n + 1 - 2*int32(w.IntN(2))
	for i := range next {
		next[i] %= n
	}
	return 0 // symmetric: up to a constant
}

func (neighbour) LogReverse(*samplers.Worker, *samplers.State, int, *samplers.Point) float64 {
	return 0
}

// hill has its top in the middle of each site's values.
type hill struct{ space energies.Space }

func (h *hill) Space() *energies.Space { return &h.space }

func (h *hill) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = 0
		for _, v := range x.Chain(c) {
			u[c] -= 0.5 * float64((v-5)*(v-5))
		}
	}
	return nil
}

// A kernel of one's own is a proposal. Register gives a kernel a name; then the tests
// of package samplertest demand its law and prove it.
func ExampleMetropolis() {
	eval, err := samplers.NewEvaluator(&hill{energies.Space{Sites: 2, Values: 11, Kind: energies.Ordinal}})
	if err != nil {
		log.Fatal(err)
	}
	kernel := &samplers.Metropolis{Evaluator: eval, Proposal: neighbour{}}
	var draws samplers.Recorder
	if _, err := samplers.Run(context.Background(), samplers.Config{
		Kernel: kernel, Chains: 8, Warmup: 200, Steps: 4000, Seed: 1, Observers: []samplers.Observer{&draws},
	}); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("mean %.1f\n", draws.Mean(func(x []int32) float64 { return float64(x[0]) }))
	// Output: mean 5.0
}
