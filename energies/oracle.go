package energies

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
)

// Capability is a set of queries that an energy can answer. A [Query] asks one of them.
type Capability uint16

const (
	// Density queries U.
	Density Capability = 1 << iota
	// Gradient queries U and Grad = ∂U/∂onehot.
	Gradient
	// Tilt queries U and Tilt = softmax_v(½·g[i,v]). A neural runtime computes the softmax ten times
	// faster than Go.
	Tilt
	// Temper queries Tilt = softmax_v(½·β_c·g[i,v]) for a given gradient Grad and inverse temperatures
	// Beta. It does not read the states or evaluate U.
	Temper
	// Conditional queries LogP, the log full conditional of one site.
	Conditional
	// ModelConditional queries LogP, the model's own prediction of one site given the others, such as
	// that of a masked language model. It need not be a conditional of exp(U): sampling from it
	// (pseudo-Gibbs) has no known stationary distribution.
	ModelConditional
	// Estimate queries unbiased estimates of U and Grad from the minibatches Terms, for an energy that
	// is a sum over data, U(x) = Σ_j ψ_j(x), or whose exp(U) is a mean: see Capabilities.Quenched
	// (Sun et al. 2023, SGDLD).
	Estimate
	// Block queries LogP of all sites of one colour; see Capabilities.Colours.
	Block
	// Drafted is not a query: it says that Capabilities.Draft is there.
	Drafted
)

var capabilityNames = []string{
	"a log-density", "a gradient", "a tilt", "a tilt at any temperature", "full conditionals",
	"conditionals of the model's own", "minibatches of its terms", "conditionals of whole colours",
	"a draft",
}

// Has reports whether c contains every capability of d.
func (c Capability) Has(d Capability) bool { return c&d == d }

// String returns the set in words, such as "a log-density, a gradient".
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

// Capabilities describes the queries that an energy answers. It never changes.
type Capabilities struct {
	// Answers is the set of queries.
	Answers Capability
	// Terms is the number of terms, at least 1, if the energy answers Estimate.
	Terms int
	// Quenched means that the terms are densities, exp(U(x)) = (1/T)·Σ_j ψ_j(x). Estimate then returns
	// logarithms of the mean ψ̂ over a minibatch: U = log ψ̂(x), and Grad[c,i,v] = log ψ̂ at the state
	// with v at site i. Average estimates before taking the logarithm.
	Quenched bool
	// NoGradient is the reason why there is no gradient, for messages; it may be nil.
	NoGradient error
	// Colours lists the sites of each colour, in increasing order, if the energy answers Block. Sites
	// of a colour are conditionally independent given the others. It must not be modified.
	Colours [][]int32
	// Draft is a cheap stand-in for the energy over the same space, or nil; see [WithDraft].
	Draft Oracle
}

// Query is one query about every state of a batch. The energy fills the slices that Want requires and
// does not retain them.
type Query struct {
	// Want is a single Capability.
	Want Capability
	// X holds the states; Temper reads only its Space.
	X Batch
	// U receives log-densities in nats, [chain], or estimates of them.
	U []float64
	// Grad receives gradients, [chain, site, value]; Temper reads it. Entries of values that the space
	// does not allow are unspecified but finite.
	Grad []float32
	// Tilt receives softmax rows, [chain, site, value], exactly zero for values that are not allowed. A
	// row sums to one up to float32 rounding. It may underflow to zero where ½g is 87 nats below its
	// maximum.
	Tilt []float32
	// Beta holds inverse temperatures for Temper, [chain].
	Beta []float64
	// Site is the site of a conditional. LogP receives the log-probabilities up to a constant per chain
	// in nats, [chain, value], -Inf for values that are not allowed. For Block, Sites is a colour and
	// LogP is [chain, index in Sites, value].
	Site  int
	Sites []int32
	LogP  []float64
	// Terms holds the minibatch of each chain as indices of terms, which may repeat. The estimate is
	// (T/b)·Σ_{j in Terms[c]} ψ_j(x_c), where T is the number of terms and b the length of Terms[c].
	Terms [][]int32
}

// Oracle is an Energy that declares the queries it can answer.
type Oracle interface {
	Energy
	// Capabilities returns the queries that Answer supports, always including Density.
	Capabilities() Capabilities
	// Answer fills the slices that q.Want requires, under the rules of LogDensity. It returns an
	// *UnsupportedError for a query outside its Capabilities.
	Answer(ctx context.Context, q Query) error
}

// AsOracle returns e itself if it is an Oracle. Otherwise it returns an Oracle that answers Density;
// Gradient if e is Differentiable; and Conditional if e has a method
//
//	LogConditional(ctx context.Context, lp []float64, site int, x Batch) error
//
// that sets lp to Query.LogP of a site.
func AsOracle(e Energy) Oracle {
	if o, ok := e.(Oracle); ok {
		return o
	}
	return plain{e}
}

// Unwrap returns what is below e's methods Unwrap() Energy, if it has one, and so on: an energy of known form below
// its description, for example.
func Unwrap(e Energy) Energy {
	for {
		w, ok := e.(interface{ Unwrap() Energy })
		if !ok {
			return e
		}
		e = w.Unwrap()
	}
}

// plain adapts an Energy to an Oracle.
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

// UnsupportedError reports a query that an energy does not support.
type UnsupportedError struct {
	// Who is the source of the query, such as the name of a sampler, or "".
	Who string
	// Want is the unsupported query.
	Want Capability
	// Err is the reason, or nil.
	Err error
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("energies: this energy does not provide %s", e.Want)
	if e.Who != "" {
		text = fmt.Sprintf("%s needs %s, which this energy does not provide", e.Who, e.Want)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *UnsupportedError) Unwrap() error { return e.Err }
