package samplers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/gradhop/gradhop/energies"
)

// ErrStop is returned by an Observer to end a run early and without an error.
var ErrStop = errors.New("samplers: stop")

// NonFiniteError reports an energy that gave NaN or +Inf where a finite number
// (or -Inf, for U) is needed.
type NonFiniteError struct {
	// Chain is the chain's number in the whole run, Step the number of the step.
	Chain, Step int64
	// What is "log-density", "gradient", "conditional" or, of PEZ, "embedding".
	What string
	// Value is U of the state.
	Value float64
	// State holds the codes at which it happened, [site].
	State []int32
}

func (e *NonFiniteError) Error() string {
	if e.What == "gradient" || e.What == "embedding" {
		return fmt.Sprintf("samplers: chain %d, step %d: %s is not finite at state %s (log-density %g)", e.Chain, e.Step, e.What, codes(e.State), e.Value)
	}
	return fmt.Sprintf("samplers: chain %d, step %d: %s is %g at state %s", e.Chain, e.Step, e.What, e.Value, codes(e.State))
}

// ZeroProbabilityError reports an initial state with U = -Inf, from which no
// chain can start.
type ZeroProbabilityError struct {
	Chain int64   // number in the whole run
	State []int32 // codes, [site]
}

func (e *ZeroProbabilityError) Error() string {
	return fmt.Sprintf("samplers: chain %d: initial state %s has probability zero (log-density -Inf)", e.Chain, codes(e.State))
}

// UnknownError reports a name that the registry or a sampler's options lack.
type UnknownError struct {
	What    string   // "sampler" or "option of NAME"
	Name    string   // as given
	Known   []string // every known name, sorted
	Nearest string   // the known name that Name is probably a slip of, or ""
}

func (e *UnknownError) Error() string {
	msg := fmt.Sprintf("samplers: unknown %s %q", e.What, e.Name)
	if e.Nearest != "" {
		msg += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	if len(e.Known) == 0 {
		return msg + " (there are none)"
	}
	return msg + " (known: " + strings.Join(e.Known, ", ") + ")"
}

// ExitCode returns 2: bad usage or input.
func (*UnknownError) ExitCode() int { return 2 }

// OptionError reports an option whose value cannot be used.
type OptionError struct {
	Sampler, Option, Value, Reason string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("samplers: %s: option %s: value %q: %s", e.Sampler, e.Option, e.Value, e.Reason)
}

// ExitCode returns 2: bad usage or input.
func (*OptionError) ExitCode() int { return 2 }

// ConfigError reports a Config that contradicts itself.
type ConfigError struct {
	Field, Reason string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("samplers: %s: %s", e.Field, e.Reason) }

// ExitCode returns 2: bad usage or input.
func (*ConfigError) ExitCode() int { return 2 }

func unknown(what, name string, known []string) *UnknownError {
	slices.Sort(known)
	e := &UnknownError{What: what, Name: name, Known: known}
	best := max(1, len(name)/3) + 1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), k); d < best {
			best, e.Nearest = d, k
		}
	}
	return e
}

// codes prints a state, shortened in the middle where it is long.
func codes(x []int32) string {
	if len(x) <= 16 {
		return fmt.Sprint(x)
	}
	head, tail := fmt.Sprint(x[:12]), fmt.Sprint(x[len(x)-3:])
	return fmt.Sprintf("%s ... %s (%d sites)", strings.TrimSuffix(head, "]"), strings.TrimPrefix(tail, "["), len(x))
}

func cloneCodes(x energies.Batch, chain int) []int32 { return slices.Clone(x.Chain(chain)) }

func isZero(u float64) bool { return math.IsInf(u, -1) }

func nonFinite(u float64) bool { return math.IsNaN(u) || math.IsInf(u, 1) }
