package prompttune

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

func init() {
	samplers.Register(samplers.Registration{
		Name:  "search",
		Doc:   "PEZ, then GCG that starts again from the perturbed best prompt",
		Paper: "Wen et al. 2023 (arXiv:2302.03668); Zou et al. 2023 (arXiv:2307.15043)",
		Bias:  "none: an optimiser, not a sampler",
		Needs: energies.Gradient,
	}, NewHybrid)
}

// HybridOptions are the options of Hybrid; the zero value has the defaults.
type HybridOptions struct {
	// PEZSteps is the number of steps of PEZ; 0 means 1000, and a negative number none.
	PEZSteps int `flag:"pez-steps" zero:"-1" default:"1000" doc:"steps of PEZ, before those of GCG"`
	// LearningRate and WeightDecay are those of PEZOptions.
	LearningRate float64 `flag:"lr" default:"0.1" doc:"learning rate"`
	WeightDecay  float64 `flag:"weight-decay" zero:"-1" default:"0.1" doc:"weight decay, apart from the gradient"`
	// Candidates, TopK, Restart and Perturb are those of GCGOptions, but 0 means 32
	// candidates, a restart after 4 steps, and 1 site.
	Candidates int `flag:"candidates" default:"32" doc:"changes evaluated in a step"`
	TopK       int `flag:"top-k" default:"256" doc:"changes go to the k tokens of largest gradient at each blank"`
	Restart    int `flag:"restart" default:"4" doc:"start again from the perturbed best prompt after so many steps without a better one"`
	Perturb    int `flag:"perturb" default:"1" doc:"blanks that a restart changes"`
}

// Hybrid is an optimiser: PEZ for some steps, then GCG from the best state that PEZ visited,
// with restarts from the best state so far. PEZ goes far in few evaluations, GCG goes on
// where PEZ circles. Energies without embeddings, such as sums of models, begin with GCG.
type Hybrid struct {
	samplers.Base
	pez   *PEZ // nil for none
	gcg   *GCG
	steps int64 // of PEZ
}

var _ samplers.Kernel = (*Hybrid)(nil)

// NewHybrid returns the kernel for e. Errors are those of NewPEZ and NewGCG.
func NewHybrid(e energies.Energy, o HybridOptions) (*Hybrid, error) {
	if o.PEZSteps > 1<<30 || o.PEZSteps < -1 {
		return nil, &samplers.OptionError{Sampler: "search", Option: "pez-steps", Value: fmt.Sprint(o.PEZSteps), Reason: "must be a number of steps"}
	}
	gcg, err := NewGCG(e, GCGOptions{Candidates: cmp.Or(o.Candidates, 32), TopK: o.TopK, Restart: cmp.Or(o.Restart, 4), Perturb: cmp.Or(o.Perturb, 1)})
	if err != nil {
		return nil, err
	}
	k := &Hybrid{gcg: gcg, steps: int64(max(0, cmp.Or(o.PEZSteps, 1000)))}
	k.Base = samplers.Base{Oracle: gcg.Oracle, Specs: gcg.Specs}
	if _, ok := e.(Embedded); !ok || k.steps == 0 {
		k.steps = 0
		return k, nil
	}
	if k.pez, err = NewPEZ(e, PEZOptions{LearningRate: o.LearningRate, WeightDecay: o.WeightDecay}); err != nil {
		return nil, err
	}
	// Each part keeps the variables of both.
	k.Specs = append(k.Specs, k.pez.Specs...)
	k.gcg.Specs, k.pez.Specs = k.Specs, k.Specs
	return k, nil
}

// Init implements samplers.Kernel.
func (k *Hybrid) Init(ctx context.Context, s *samplers.State) error {
	if s.Step >= k.steps {
		return k.gcg.Init(ctx, s)
	}
	if err := k.pez.Init(ctx, s); err != nil {
		return err
	}
	remember(s)
	return nil
}

// Step implements samplers.Kernel.
func (k *Hybrid) Step(ctx context.Context, s *samplers.State, info *samplers.Info) error {
	if s.Step >= k.steps {
		return k.gcg.Step(ctx, s, info)
	}
	if err := k.pez.Step(ctx, s, info); err != nil {
		return err
	}
	remember(s)
	if s.Step < k.steps {
		return nil
	}
	best, score := s.Var(bestVar), s.Var(scoreVar)
	for c := range s.U {
		s.U[c] = score[c]
		for i := range s.X.Chain(c) {
			s.X.Chain(c)[i] = int32(best[c*s.X.Space.Sites+i])
		}
	}
	return nil
}
