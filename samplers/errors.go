package samplers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// ErrStop is returned by an Observer to end a run early and without an error.
var ErrStop = errors.New("samplers: stop")

// NonFiniteError reports an energy that gave NaN or +Inf where a finite number
// (or -Inf, for U) is needed, or an initial state of probability zero.
type NonFiniteError struct {
	// Chain is the chain's number in the whole run, Step the number of the step.
	Chain, Step int64
	// What is "log-density", "gradient", "conditional" or the name of a variable.
	What string
	// Value is U of the state: -Inf where the initial state has probability zero.
	Value float64
	// State holds the codes at which it happened, [site].
	State []int32
}

func (e *NonFiniteError) Error() string {
	at := fmt.Sprintf("samplers: chain %d, step %d:", e.Chain, e.Step)
	switch {
	case e.What == "log-density" && isZero(e.Value):
		return fmt.Sprintf("%s state %s has probability zero (log-density -Inf)", at, codes(e.State))
	case e.What == "log-density" || e.What == "conditional":
		return fmt.Sprintf("%s %s is %g at state %s", at, e.What, e.Value, codes(e.State))
	}
	return fmt.Sprintf("%s %s is not finite at state %s (log-density %g)", at, e.What, codes(e.State), e.Value)
}

// OptionError reports a setting that cannot be used: an option of a sampler, a field of a
// Config, a schedule or a name that the registry lacks.
type OptionError struct {
	Sampler string // "" where the setting is of no one sampler
	Option  string
	Value   string // as given; "" where there is no one value
	Reason  string
}

func (e *OptionError) Error() string {
	msg := "samplers: "
	if e.Sampler != "" {
		msg += e.Sampler + ": "
	}
	msg += e.Option
	if e.Value != "" {
		msg += fmt.Sprintf(" %q", e.Value)
	}
	return msg + ": " + e.Reason
}

// UnknownName reports the name of something (what) that is not among the known ones, and the nearest
// of these; sampler is "" or the sampler that it is an option of.
func UnknownName(sampler, what, name string, known []string) *OptionError {
	slices.Sort(known)
	best, nearest := max(1, len(name)/3)+1, ""
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), k); d < best {
			best, nearest = d, k
		}
	}
	reason := "known are " + strings.Join(known, ", ")
	if len(known) == 0 {
		reason = "there are none"
	}
	if nearest != "" {
		reason = fmt.Sprintf("did you mean %q? (%s)", nearest, reason)
	}
	return &OptionError{sampler, "unknown " + what, name, reason}
}

// codes prints a state, shortened in the middle where it is long.
func codes(x []int32) string {
	if len(x) <= 16 {
		return fmt.Sprint(x)
	}
	head, tail := fmt.Sprint(x[:12]), fmt.Sprint(x[len(x)-3:])
	return fmt.Sprintf("%s ... %s (%d sites)", strings.TrimSuffix(head, "]"), strings.TrimPrefix(tail, "["), len(x))
}
