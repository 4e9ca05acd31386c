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

// Hybrid makes steps of one kernel, then those of another from the best state that the first
// visited. PEZ goes far in few evaluations, GCG improves where PEZ circles, and a sampler that
// starts where both have been needs no warm-up of its own. Before the second kernel's first step
// nothing else is changed, so an exact one stays exact: its draws begin after the steps of the
// first.
type Hybrid struct {
	first, then samplers.Kernel
	steps       int64 // of first
	specs       []samplers.VarSpec
	begun       bool // then is initialised
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
	if _, ok := e.(Embedded); !ok || o.PEZSteps < 0 {
		return newHybrid(gcg, 0, gcg), nil
	}
	pez, err := NewPEZ(e, PEZOptions{LearningRate: o.LearningRate, WeightDecay: o.WeightDecay})
	if err != nil {
		return nil, err
	}
	return newHybrid(pez, cmp.Or(o.PEZSteps, 1000), gcg), nil
}

// newHybrid puts steps of one kernel before those of another. They share variables of one name.
func newHybrid(first samplers.Kernel, steps int, then samplers.Kernel) *Hybrid {
	k := &Hybrid{first: first, then: then, steps: int64(steps)}
	for _, v := range slices.Concat(then.Vars(), first.Vars(), bestSpecs(then.Energy().Space().Sites)) {
		if !slices.ContainsFunc(k.specs, func(has samplers.VarSpec) bool { return has.Name == v.Name }) {
			k.specs = append(k.specs, v)
		}
	}
	return k
}

// Energy implements samplers.Kernel.
func (k *Hybrid) Energy() energies.Oracle { return k.then.Energy() }

// Vars implements samplers.Kernel.
func (k *Hybrid) Vars() []samplers.VarSpec { return k.specs }

// Init implements samplers.Kernel.
func (k *Hybrid) Init(ctx context.Context, s *samplers.State) error {
	if k.begun = s.Step >= k.steps; k.begun {
		return k.start(ctx, s, k.then)
	}
	if err := k.start(ctx, s, k.first); err != nil {
		return err
	}
	remember(s)
	return nil
}

// start initialises one of the kernels. Other variables stay. The second kernel begins without
// variables of its own: until then they are declared, but have no value.
func (k *Hybrid) start(ctx context.Context, s *samplers.State, kernel samplers.Kernel) error {
	kept := s.Vars
	if kernel == k.then && s.Step == k.steps {
		own := k.then.Vars()
		s.Vars = slices.DeleteFunc(slices.Clone(kept), func(v samplers.Var) bool {
			return v.Name != bestVar && v.Name != scoreVar && slices.ContainsFunc(own, func(o samplers.VarSpec) bool { return o.Name == v.Name })
		})
	}
	err := kernel.Init(ctx, s)
	own := s.Vars
	s.Vars = kept
	if err != nil {
		return err
	}
	s.Declare(k.specs)
	for _, v := range own {
		copy(s.Var(v.Name), v.Data)
	}
	for _, v := range kept { // of a Hybrid around this one
		if s.Var(v.Name) == nil {
			s.Vars = append(s.Vars, v)
		}
	}
	return nil
}

// Step implements samplers.Kernel.
func (k *Hybrid) Step(ctx context.Context, s *samplers.State, info *samplers.Info) error {
	if s.Step >= k.steps {
		if !k.begun {
			if err := k.start(ctx, s, k.then); err != nil {
				return err
			}
			k.begun = true
		}
		return k.then.Step(ctx, s, info)
	}
	if err := k.first.Step(ctx, s, info); err != nil {
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
