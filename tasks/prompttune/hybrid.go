package prompttune

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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

// Hybrid makes steps of PEZ, then those of another kernel from the best state that PEZ visited.
// PEZ goes far in few evaluations; GCG improves where PEZ circles, and a sampler that starts
// where PEZ has been needs no warm-up of its own. Before the other kernel's first step nothing
// else is changed, so an exact one stays exact: its draws begin after the steps of PEZ.
type Hybrid struct {
	pez   *PEZ
	then  samplers.Kernel
	steps int64 // of PEZ
	specs []samplers.VarSpec
	begun bool // then is initialised
}

var _ samplers.Kernel = (*Hybrid)(nil)

// NewHybrid returns PEZ followed by GCG for e. Energies without embeddings, such as sums of
// models, begin with GCG. Errors are those of NewPEZ and NewGCG.
func NewHybrid(e energies.Energy, o HybridOptions) (*Hybrid, error) {
	if o.PEZSteps > 1<<30 || o.PEZSteps < -1 {
		return nil, &samplers.OptionError{Sampler: "search", Option: "pez-steps", Value: fmt.Sprint(o.PEZSteps), Reason: "must be a number of steps"}
	}
	gcg, err := NewGCG(e, GCGOptions{Candidates: cmp.Or(o.Candidates, 32), TopK: o.TopK, Restart: cmp.Or(o.Restart, 4), Perturb: cmp.Or(o.Perturb, 1)})
	if err != nil {
		return nil, err
	}
	return startWithPEZ(e, gcg, max(0, cmp.Or(o.PEZSteps, 1000)), PEZOptions{LearningRate: o.LearningRate, WeightDecay: o.WeightDecay})
}

// startWithPEZ puts steps of PEZ on e before those of a kernel, none where e has no
// embeddings. Errors are those of NewPEZ.
func startWithPEZ(e energies.Energy, then samplers.Kernel, steps int, o PEZOptions) (*Hybrid, error) {
	k := &Hybrid{then: then, steps: int64(steps), specs: then.Vars()}
	if _, ok := e.(Embedded); !ok || steps == 0 {
		k.steps = 0
		return k, nil
	}
	var err error
	if k.pez, err = NewPEZ(e, o); err != nil {
		return nil, err
	}
	k.specs = slices.Concat(k.specs, k.pez.Specs)
	for _, v := range bestSpecs(e.Space().Sites) {
		if !slices.ContainsFunc(k.specs, func(has samplers.VarSpec) bool { return has.Name == v.Name }) {
			k.specs = append(k.specs, v)
		}
	}
	k.pez.Specs = k.specs
	return k, nil
}

// Energy implements samplers.Kernel.
func (k *Hybrid) Energy() energies.Oracle { return k.then.Energy() }

// Vars implements samplers.Kernel.
func (k *Hybrid) Vars() []samplers.VarSpec { return k.specs }

// Init implements samplers.Kernel.
func (k *Hybrid) Init(ctx context.Context, s *samplers.State) error {
	k.begun = false
	if s.Step >= k.steps {
		return k.begin(ctx, s)
	}
	if err := k.pez.Init(ctx, s); err != nil {
		return err
	}
	remember(s)
	return nil
}

// begin initialises the kernel after PEZ. The variables of PEZ stay.
func (k *Hybrid) begin(ctx context.Context, s *samplers.State) error {
	kept := s.Vars
	err := k.then.Init(ctx, s)
	own := s.Vars
	s.Vars = kept
	if err != nil {
		return err
	}
	s.Declare(k.specs)
	for _, v := range own {
		copy(s.Var(v.Name), v.Data)
	}
	k.begun = true
	return nil
}

// Step implements samplers.Kernel.
func (k *Hybrid) Step(ctx context.Context, s *samplers.State, info *samplers.Info) error {
	if s.Step >= k.steps {
		if !k.begun {
			if err := k.begin(ctx, s); err != nil {
				return err
			}
		}
		return k.then.Step(ctx, s, info)
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

// Tune implements samplers.Kernel.
func (k *Hybrid) Tune(s *samplers.State, info *samplers.Info, last bool) {
	if s.Step > k.steps {
		k.then.Tune(s, info, last)
	}
}
