package run

import (
	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// kernel builds the sampler for an energy.
func (c *Chains) kernel(e energies.Energy) (samplers.Kernel, error) {
	r, err := c.Registration()
	if err != nil {
		return nil, err
	}
	return r.New(e, c.Options)
}
