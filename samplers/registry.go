package samplers

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gradhop/gradhop/energies"
)

// Need is what a sampler asks of an energy.
type Need uint8

const (
	// NeedsDensity is U alone: every Energy will do.
	NeedsDensity Need = iota
	// NeedsGradient is an energies.Differentiable.
	NeedsGradient
	// NeedsModelConditional is an energies.ModelConditional.
	NeedsModelConditional
	// NeedsTerms is an energies.Stochastic.
	NeedsTerms
	// NeedsEmbedding is an energies.Embedded.
	NeedsEmbedding
)

// String names the need in messages and tables.
func (n Need) String() string {
	switch n {
	case NeedsDensity:
		return "a log-density"
	case NeedsGradient:
		return "a gradient"
	case NeedsModelConditional:
		return "a conditional of the model's own"
	case NeedsTerms:
		return "a sum of terms to draw from"
	case NeedsEmbedding:
		return "embeddings of its values"
	}
	return fmt.Sprintf("need(%d)", uint8(n))
}

// Met reports whether e offers what n asks for.
func (n Need) Met(e energies.Energy) bool {
	var ok bool
	switch n {
	case NeedsDensity:
		ok = true
	case NeedsGradient:
		_, ok = e.(energies.Differentiable)
	case NeedsModelConditional:
		_, ok = e.(energies.ModelConditional)
	case NeedsTerms:
		_, ok = e.(energies.Stochastic)
	case NeedsEmbedding:
		_, ok = e.(energies.Embedded)
	}
	return ok
}

// Registration describes a sampler that can be chosen by name.
type Registration struct {
	// Name is the lower-case name, as "dmala".
	Name string
	// Doc is one line for lists and help texts.
	Doc string
	// Paper cites where the algorithm comes from.
	Paper string
	// Exact says that the kernel leaves π ∝ exp(U) invariant.
	Exact bool
	// Adapts says that warm-up adapts the step size, unless one is given.
	Adapts bool
	// Needs is what it asks of the energy.
	Needs Need
	// Flags describes the options; Register fills it from the option struct.
	Flags []Flag

	build func(energies.Energy, Settings) (Kernel, error)
}

// New builds the sampler for e. Missing settings have their defaults. Errors are
// *UnsupportedError, *UnknownError (a setting), *OptionError or
// *energies.SpaceError.
func (r Registration) New(e energies.Energy, s Settings) (Kernel, error) { return r.build(e, s) }

var registry = struct {
	sync.RWMutex
	byName map[string]Registration
}{byName: map[string]Registration{}}

// Register adds a sampler whose options are the struct type O, read from
// [Settings] by the tags of its fields (see [Flag]). It is called from init
// functions and panics where the name is taken.
func Register[O any, K Kernel](r Registration, build func(energies.Energy, O) (K, error)) {
	r.Flags = flagsOf[O]()
	r.build = func(e energies.Energy, s Settings) (Kernel, error) {
		var o O
		if err := s.decode(r.Name, &o); err != nil {
			return nil, err
		}
		k, err := build(e, o)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.byName[r.Name]; taken {
		panic("samplers: " + r.Name + " is registered twice")
	}
	registry.byName[r.Name] = r
}

// Names returns the names of all samplers, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := make([]string, 0, len(registry.byName))
	for name := range registry.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Lookup returns the sampler called name, or an *UnknownError.
func Lookup(name string) (Registration, error) {
	registry.RLock()
	r, ok := registry.byName[name]
	registry.RUnlock()
	if !ok {
		return Registration{}, unknown("sampler", name, Names())
	}
	return r, nil
}

// New builds the sampler called name for e: Lookup and Registration.New.
func New(name string, e energies.Energy, s Settings) (Kernel, error) {
	r, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return r.New(e, s)
}
