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

// embeddedProbe is the same of one model, whose tokens have one embedding.
type embeddedProbe struct{ probe }

var (
	_ energies.Tempered   = probe{}
	_ energies.Stochastic = probe{}
	_ energies.Embedded   = embeddedProbe{}
)

func (probe) Space() *energies.Space                                                     { return &energies.Space{Sites: 1, Values: 3} }
func (probe) LogDensity(context.Context, []float64, energies.Batch) error                { return nil }
func (probe) LogDensityGrad(context.Context, []float64, []float32, energies.Batch) error { return nil }
func (probe) LogDensityTilt(context.Context, []float64, []float32, energies.Batch) error { return nil }
func (probe) Tilt(context.Context, []float32, []float32, float64) error                  { return nil }
func (probe) Terms() int                                                                 { return probeTerms }
func (probe) EstimateGrad(context.Context, []float64, []float32, energies.Batch, [][]int32) error {
	return nil
}

func (embeddedProbe) Width() int                      { return 1 }
func (embeddedProbe) Embed([]float32, energies.Batch) {}
func (embeddedProbe) EmbeddingGrad(context.Context, []float64, []float32, energies.Batch) error {
	return nil
}
func (embeddedProbe) Nearest(context.Context, []int32, []float32) error { return nil }
