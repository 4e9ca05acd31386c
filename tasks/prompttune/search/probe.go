package search

import (
	"context"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// Check finds what is wrong with the options of a method before a model is loaded, for prompts under a
// number of models. Errors are those of Registration.New.
func Check(r samplers.Registration, models int, options samplers.Settings) error {
	if !Optimises(r.Name) {
		return r.Check(probe{}.Capabilities(), options)
	}
	var e energies.Energy = embeddedProbe{}
	if models > 1 {
		e = probe{}
	}
	_, err := r.New(e, options)
	return err
}

// probe is an energy of the kind that prompts have. It is never evaluated.
type probe struct{}

func (probe) Space() *energies.Space                                      { return &energies.Space{Sites: 1, Values: 3} }
func (probe) LogDensity(context.Context, []float64, energies.Batch) error { return nil }
func (probe) Answer(context.Context, energies.Query) error                { return nil }

// Capabilities implements energies.Oracle. Terms is more pictures than any run has; samplers make lists
// of that length.
func (probe) Capabilities() energies.Capabilities {
	return energies.Capabilities{
		Answers: energies.Density | energies.Gradient | energies.Tilt | energies.Temper | energies.Estimate, Terms: 1 << 20,
	}
}

// embeddedProbe is the same of one model, whose tokens have one embedding.
type embeddedProbe struct{ probe }

func (embeddedProbe) Width() int                      { return 1 }
func (embeddedProbe) Embed([]float32, energies.Batch) {}
func (embeddedProbe) EmbeddingGrad(context.Context, []float64, []float32, energies.Batch, [][]int32) error {
	return nil
}
func (embeddedProbe) Nearest(context.Context, []int32, []float32) error { return nil }
