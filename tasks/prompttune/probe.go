package prompttune

import (
	"context"

	"github.com/gradhop/gradhop/energies"
)

// probe is an energy of the kind that prompts have, on which a sampler's settings are tried
// before a model is loaded. It is never evaluated.
type probe struct{}

// probeTerms is more pictures than any run has; samplers make lists of that length.
const probeTerms = 1 << 20

var promptCan = energies.Capabilities{
	Answers: energies.Density | energies.Gradient | energies.Tilt | energies.Temper | energies.Estimate, Terms: probeTerms,
}

func (probe) Space() *energies.Space                                      { return &energies.Space{Sites: 1, Values: 3} }
func (probe) LogDensity(context.Context, []float64, energies.Batch) error { return nil }
func (probe) Capabilities() energies.Capabilities                         { return promptCan }
func (probe) Answer(context.Context, energies.Query) error                { return nil }

// embeddedProbe is the same of one model, whose tokens have one embedding.
type embeddedProbe struct{ probe }

func (embeddedProbe) Width() int                      { return 1 }
func (embeddedProbe) Embed([]float32, energies.Batch) {}
func (embeddedProbe) EmbeddingGrad(context.Context, []float64, []float32, energies.Batch, [][]int32) error {
	return nil
}
func (embeddedProbe) Nearest(context.Context, []int32, []float32) error { return nil }
