package samplers

import (
	"context"

	"github.com/gradhop/gradhop/energies"
)

// Kernel makes steps of Markov chains. It keeps scratch memory between calls,
// so one Kernel must not be used by two goroutines at once; it may serve several
// States in turn.
type Kernel interface {
	// Energy returns the energy whose law the kernel draws from.
	Energy() energies.Energy
	// Init recomputes what is derived from s.X, and must be called again when
	// codes were changed from outside. It fails with a *NonFiniteError or a
	// *ZeroProbabilityError that names the chain.
	Init(ctx context.Context, s *State) error
	// Step makes one step of every chain with the streams of s.Step, adds one to
	// s.Step and fills info. On error, cancellation included, s is unchanged, except
	// that Local may be at β of the step that failed.
	Step(ctx context.Context, s *State, info *Info) error
}

// StepSizer is a Kernel with a step size α.
type StepSizer interface {
	Kernel
	// StepSize returns the α that chains start from, and the acceptance
	// probability to which warm-up adapts it; target 0 means that α stays.
	StepSize() (start, target float64)
}

// Keeper is a Kernel that gathers something over several steps, which a restart
// needs besides the codes.
type Keeper interface {
	Kernel
	// Keeps reports whether it uses State.Since, and how many numbers of State.Aux each
	// chain has.
	Keeps() (since bool, aux int)
}

// Weigher is a Kernel whose draws count by weights in estimates of expectations.
type Weigher interface {
	Kernel
	// Weighs reports whether Init and Step fill State.Weight.
	Weighs() bool
}

// checkInit verifies U of every chain of a state just evaluated by Init.
func checkInit(s *State) error {
	for c := range s.Chains() {
		if err := s.check(c, &s.X, s.ChainIDs[c], s.Step); err != nil {
			return err
		}
		if isZero(s.U[c]) {
			return &ZeroProbabilityError{Chain: s.ChainIDs[c], State: cloneCodes(s.X, c)}
		}
	}
	return nil
}
