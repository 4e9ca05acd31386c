package samplers

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// maxChains bounds the chains of a run, whose states are all in memory: more is a slip.
const maxChains = 1 << 24

// Config says what a run does. Zero fields have the defaults named with them.
type Config struct {
	// Kernel makes the steps, on its own energy. It is needed.
	Kernel Kernel
	// Chains is the number of chains, at most 2^24; 0 means as many as ChainIDs, Init or Resume
	// name, and 1 where none does.
	Chains int
	// ChainIDs are the chains' numbers in the whole run, distinct and not
	// negative; nil means 0..Chains-1.
	ChainIDs []int64
	// Init holds the initial codes, [chain, site]; nil means a uniform draw of
	// every site from its allowed values. It is copied.
	Init []int32
	// Steps is the number of steps after warm-up, Warmup that before; at least
	// one of the two is positive. Step sizes are adapted in warm-up only.
	Steps, Warmup int
	// Thin keeps every Thin-th step after warm-up as a draw; 0 means every step.
	Thin int
	// Seed is the first word of every random stream; 0 is a seed like any other.
	Seed uint64
	// InverseTemperature gives β of each step, whose target is then π^β ∝ exp(β·U): step
	// is the number of the step about to be made, warm-up included, from 0 on (the t-th
	// step of a paper that counts from 1 is step t-1). Nil means 1 throughout. U of states
	// and draws remains that of β = 1. It must be from 0 to 1e15, and the kernel
	// an Annealer; see ParseSchedule.
	InverseTemperature func(step int64) float64
	// PoolWarmup adapts one step size for all chains by their mean acceptance, which
	// settles sooner. Chains are then no longer independent of each other, and a run
	// cannot be split by chains.
	PoolWarmup bool
	// RejectNonFinite treats proposals with NaN or +Inf as having probability
	// zero; the default is to fail with a *NonFiniteError.
	RejectNonFinite bool
	// Observers are called in order after every step.
	Observers []Observer
	// Resume continues from a snapshot of a run with the same settings, whose
	// Steps may be fewer. Init must be nil; Seed and ChainIDs must be the
	// snapshot's.
	Resume *Snapshot
}

// check returns a *ConfigError where the settings contradict themselves, and
// fills in defaults.
func (c *Config) check() error {
	if c.Kernel == nil {
		return &ConfigError{"Kernel", "missing"}
	}
	sp := c.Kernel.Energy().Space()
	if c.InverseTemperature != nil {
		if a, ok := c.Kernel.(Annealer); !ok || !a.Anneals() {
			return &ConfigError{"InverseTemperature", "this sampler draws at inverse temperature 1 alone"}
		}
	}
	if c.Resume != nil {
		if err := c.checkResume(sp); err != nil {
			return err
		}
	}
	if c.Chains == 0 {
		switch {
		case c.ChainIDs != nil:
			c.Chains = len(c.ChainIDs)
		case c.Init != nil:
			c.Chains = len(c.Init) / sp.Sites
		default:
			c.Chains = 1
		}
	}
	if c.Thin == 0 {
		c.Thin = 1
	}
	switch {
	case c.Chains < 1:
		return &ConfigError{"Chains", fmt.Sprintf("%d; at least one is needed", c.Chains)}
	case c.Chains > maxChains:
		return &ConfigError{"Chains", fmt.Sprintf("%d; at most %d", c.Chains, maxChains)}
	case c.Steps < 0, c.Warmup < 0:
		return &ConfigError{"Steps", fmt.Sprintf("%d steps after %d of warm-up; neither may be negative", c.Steps, c.Warmup)}
	case c.Steps > math.MaxInt-c.Warmup:
		return &ConfigError{"Steps", fmt.Sprintf("%d steps after %d of warm-up; together they are more than can be counted", c.Steps, c.Warmup)}
	case c.Steps+c.Warmup == 0:
		return &ConfigError{"Steps", "nothing to do: no step and no warm-up"}
	case c.Thin < 0:
		return &ConfigError{"Thin", fmt.Sprintf("%d; must be positive", c.Thin)}
	case c.Init != nil && len(c.Init) != c.Chains*sp.Sites:
		return &ConfigError{"Init", fmt.Sprintf("%d codes for %d chains of %d sites", len(c.Init), c.Chains, sp.Sites)}
	}
	return c.checkIDs()
}

func (c *Config) checkIDs() error {
	if c.ChainIDs == nil {
		for id := range int64(c.Chains) {
			c.ChainIDs = append(c.ChainIDs, id)
		}
		return nil
	}
	if len(c.ChainIDs) != c.Chains {
		return &ConfigError{"ChainIDs", fmt.Sprintf("%d numbers for %d chains", len(c.ChainIDs), c.Chains)}
	}
	sorted := slices.Clone(c.ChainIDs)
	slices.Sort(sorted)
	for k, id := range sorted {
		if id < 0 || k > 0 && sorted[k-1] == id {
			return &ConfigError{"ChainIDs", fmt.Sprintf("%d is negative or given twice", id)}
		}
	}
	return nil
}

// checkResume checks the snapshot against the other settings and takes the
// chains from it.
func (c *Config) checkResume(sp *energies.Space) error {
	r := c.Resume
	n := len(r.ChainIDs)
	_, adapts := targetOf(c.Kernel)
	sized := 0
	if _, ok := c.Kernel.(StepSizer); ok {
		sized = n
	}
	adapted := 0
	if adapts {
		adapted = n
	}
	since, aux := 0, 0
	if k, ok := c.Kernel.(Keeper); ok {
		keeps, perChain := k.Keeps()
		if keeps {
			since = n
		}
		aux = n * perChain
	}
	switch {
	case c.Init != nil:
		return &ConfigError{"Resume", "initial codes are given as well"}
	case r.Seed != c.Seed:
		return &ConfigError{"Resume", fmt.Sprintf("the snapshot has seed %d, the run %d", r.Seed, c.Seed)}
	case c.ChainIDs != nil && !slices.Equal(c.ChainIDs, r.ChainIDs), c.Chains != 0 && c.Chains != n:
		return &ConfigError{"Resume", "the snapshot has other chains"}
	case n == 0, len(r.Codes) != n*sp.Sites, len(r.StepSize) != sized, len(r.Adapt) != adapted, len(r.Since) != since, len(r.Aux) != aux:
		return &ConfigError{"Resume", "the snapshot is of another space or sampler"}
	case r.Step < 0 || r.Step > int64(c.Warmup+c.Steps):
		return &ConfigError{"Resume", fmt.Sprintf("the snapshot is at step %d of a run of %d", r.Step, c.Warmup+c.Steps)}
	}
	c.Chains, c.ChainIDs = n, slices.Clone(r.ChainIDs)
	return nil
}

// state builds the state that the run starts from, except for what Kernel.Init
// derives.
func (c *Config) state() *State {
	sp := c.Kernel.Energy().Space()
	s := &State{Seed: c.Seed, ChainIDs: c.ChainIDs, RejectNonFinite: c.RejectNonFinite}
	if r := c.Resume; r != nil {
		s.X = energies.Batch{Space: sp, Codes: slices.Clone(r.Codes), IDs: s.ChainIDs}
		s.StepSize, s.Adapt = slices.Clone(r.StepSize), slices.Clone(r.Adapt)
		s.Since, s.Aux = slices.Clone(r.Since), slices.Clone(r.Aux)
		s.Step, s.Evaluations = r.Step, r.Evaluations
		s.Warmup = s.Step < int64(c.Warmup)
		return s
	}
	s.Warmup = c.Warmup > 0
	if c.Init != nil {
		s.X = energies.Batch{Space: sp, Codes: slices.Clone(c.Init), IDs: s.ChainIDs}
	} else {
		s.X = RandomCodes(sp, c.Seed, c.ChainIDs)
	}
	if k, ok := c.Kernel.(StepSizer); ok {
		start, _ := k.StepSize()
		s.StepSize = slices.Repeat([]float64{start}, c.Chains)
	}
	if _, adapts := targetOf(c.Kernel); adapts {
		s.Adapt = make([]Adaptation, c.Chains)
	}
	return s
}

// targetOf returns where a kernel's step size starts, and whether it adapts.
func targetOf(k Kernel) (start float64, adapts bool) {
	sizer, ok := k.(StepSizer)
	if !ok {
		return 0, false
	}
	start, target := sizer.StepSize()
	return start, target > 0
}

// RandomCodes returns a state for each chain whose sites are uniform over their
// allowed values: what a run without initial codes starts from.
func RandomCodes(sp *energies.Space, seed uint64, chainIDs []int64) energies.Batch {
	x := energies.NewBatch(sp, len(chainIDs))
	x.IDs = chainIDs
	var stream rng.Stream
	for c, id := range chainIDs {
		stream.Reset(seed, id, 0, useInit)
		for i := range x.Chain(c) {
			if list := sp.AllowedAt(i); list != nil {
				x.Chain(c)[i] = list[stream.IntN(len(list))]
			} else {
				x.Chain(c)[i] = int32(stream.IntN(sp.Values))
			}
		}
	}
	return x
}
