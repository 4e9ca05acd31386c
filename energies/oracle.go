package energies

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
)

// Capability is a set of the kinds of queries that an energy answers. A [Query]
// asks for one of them.
type Capability uint16

const (
	// Density asks for U.
	Density Capability = 1 << iota
	// Gradient asks for U and Grad = ∂U/∂onehot.
	Gradient
	// Tilt asks for U and Tilt = softmax_v(½·g[i,v]). It saves Go an exponential per
	// value: a neural runtime computes the softmax an order of magnitude faster.
	Tilt
	// Temper asks for Tilt = softmax_v(½·β_c·g[i,v]) of a given gradient Grad at
	// inverse temperatures Beta. It does not read the states and does not evaluate U.
	Temper
	// Conditional asks for LogP, the log full conditional of one site.
	Conditional
	// ModelConditional asks for LogP, the model's own prediction of one site from the
	// others, as a masked language model makes it. It need not be a conditional of
	// exp(U): drawing from it (pseudo-Gibbs) targets no known distribution.
	ModelConditional
	// Estimate asks for unbiased estimates of U and Grad from the minibatches Terms of
	// an energy that is a sum over data, U(x) = Σ_j ψ_j(x), or of exp(U) that is a mean:
	// see Capabilities.Quenched (Sun et al. 2023, SGDLD).
	Estimate
	// Block asks for LogP of all the sites of one colour: see Capabilities.Colours.
	Block
	// Level asks a two-valued energy whose sites have few distinct log-odds which of them each
	// site has: see Capabilities.Odds.
	Level
)

var capabilityNames = []string{
	"a log-density", "a gradient", "a tilt", "a tilt at any temperature", "full conditionals",
	"conditionals of the model's own", "minibatches of its terms", "conditionals of whole colours",
	"levels of log-odds",
}

// Has reports whether every capability of d is in c.
func (c Capability) Has(d Capability) bool { return c&d == d }

// String lists the set in words, as "a log-density, a gradient".
func (c Capability) String() string {
	var names []string
	for rest := c; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros16(uint16(rest))
		if k >= len(capabilityNames) {
			return fmt.Sprintf("capability(%d)", uint16(c))
		}
		names = append(names, capabilityNames[k])
	}
	return strings.Join(names, ", ")
}

// Capabilities is what an energy can answer. It never changes.
type Capabilities struct {
	// Answers is the set of queries.
	Answers Capability
	// Terms is the number of terms of an energy that answers Estimate, at least 1.
	Terms int
	// Odds lists the log-odds U(x with x_i = 1) - U(x with x_i = 0) that sites may have, in nats,
	// at most 256, for an energy that answers Level. It must not be changed.
	Odds []float64
	// Quenched says that the terms are densities, exp(U(x)) = (1/T)·Σ_j ψ_j(x). Estimate then
	// gives logarithms of the mean ψ̂ over a minibatch: U = log ψ̂(x), and Grad[c,i,v] = log ψ̂
	// at the state with v at site i. Estimates are to be averaged before the logarithm.
	Quenched bool
	// NoGradient says why there is no gradient, for messages; it may be nil.
	NoGradient error
	// Colours lists the sites of each colour, in increasing order, for an energy that answers
	// Block. No two sites of a colour interact: given the rest they are independent. It must
	// not be changed.
	Colours [][]int32
	// Draft is a cheap stand-in for the energy over the same space, or nil; see [WithDraft].
	Draft Oracle
}

// Query asks one thing about every state of a batch. Slices that Want names are
// filled by the energy, which keeps none of them.
type Query struct {
	// Want is one Capability.
	Want Capability
	// X holds the states; Temper reads only its Space.
	X Batch
	// U receives log-densities, [chain], nats; or estimates of them.
	U []float64
	// Grad receives gradients, [chain, site, value]; Temper reads it. Entries of values
	// that the space does not allow are unspecified but finite.
	Grad []float32
	// Tilt receives softmax rows, [chain, site, value]: exactly zero where the value is
	// not allowed. A row sums to one up to float32 rounding and may underflow to zero
	// where ½g is 87 nats below its maximum.
	Tilt []float32
	// Beta holds inverse temperatures for Temper, [chain].
	Beta []float64
	// Site is the site of a conditional, and LogP receives it up to a constant for each
	// chain, [chain, value], nats; -Inf where the value is not allowed.
	// Block fills it for Sites, a colour, [chain, index in Sites, value].
	Site  int
	Sites []int32
	LogP  []float64
	// Levels receives the index in Capabilities.Odds of the log-odds of every site, [chain,
	// site], and U is filled too; or of Sites alone, if these are not nil, [chain, index in Sites].
	Levels []uint8
	// Terms holds the minibatch of each chain, as indices of terms, which may repeat.
	// The estimate is (T/b)·Σ_{j in Terms[c]} ψ_j(x_c), with T the number of terms and b
	// the length of Terms[c].
	Terms [][]int32
}

// Oracle is an Energy that states what it can answer, as a value.
type Oracle interface {
	Energy
	// Capabilities returns what Answer answers. It always has Density.
	Capabilities() Capabilities
	// Answer fills the slices that q.Want names, under the rules of LogDensity. A query
	// that is not among its Capabilities gives an *UnsupportedError.
	Answer(ctx context.Context, q Query) error
}

// AsOracle returns e itself where it is an Oracle. Otherwise it returns an Oracle that
// answers Density; Gradient where e is Differentiable; and Conditional where e has a method
//
//	LogConditional(ctx context.Context, lp []float64, site int, x Batch) error
//
// that writes Query.LogP of a site.
func AsOracle(e Energy) Oracle {
	if o, ok := e.(Oracle); ok {
		return o
	}
	return plain{e}
}

// plain is an Energy as an Oracle.
type plain struct{ Energy }

type conditioned interface {
	LogConditional(ctx context.Context, lp []float64, site int, x Batch) error
}

// Capabilities implements Oracle.
func (p plain) Capabilities() Capabilities {
	c := Capabilities{Answers: Density}
	if _, ok := p.Energy.(Differentiable); ok {
		c.Answers |= Gradient
	}
	if _, ok := p.Energy.(conditioned); ok {
		c.Answers |= Conditional
	}
	return c
}

// Answer implements Oracle.
func (p plain) Answer(ctx context.Context, q Query) error {
	switch q.Want {
	case Density:
		return p.LogDensity(ctx, q.U, q.X)
	case Gradient:
		if d, ok := p.Energy.(Differentiable); ok {
			return d.LogDensityGrad(ctx, q.U, q.Grad, q.X)
		}
	case Conditional:
		if d, ok := p.Energy.(conditioned); ok {
			return d.LogConditional(ctx, q.LogP, q.Site, q.X)
		}
	}
	return &UnsupportedError{Want: q.Want}
}

// UnsupportedError reports an energy that lacks what is asked of it.
type UnsupportedError struct {
	// Who asks, such as the name of a sampler, or "".
	Who string
	// Want is what the energy does not offer.
	Want Capability
	// Err is the reason, or nil.
	Err error
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("energies: this energy does not offer %s", e.Want)
	if e.Who != "" {
		text = fmt.Sprintf("%s needs %s, which this energy does not offer", e.Who, e.Want)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// ExitCode is 2: the combination is an error of usage.
func (*UnsupportedError) ExitCode() int { return 2 }
