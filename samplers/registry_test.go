package samplers_test

import (
	"testing"

	"github.com/gradhop/gradhop/samplers/samplertest"
)

// TestKernels runs the suite on every registered sampler. A new sampler adds its
// law here, and fails the test until it does.
func TestKernels(t *testing.T) {
	samplertest.Registry(t, map[string]samplertest.Law{
		"dmala":       dmalaLaw,
		"dula":        dulaLaw,
		"gibbs":       gibbsLaw,
		"gibbs-model": gibbsModelLaw,
		"gwg":         gwgLaw,
		"pez":         pezLaw,
		"sgdld":       sgdldLaw,
	})
}
