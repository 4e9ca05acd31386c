// Package table handles spaces that are small enough to enumerate: an [Energy] given by a table of
// log-densities, and the [Enumeration] of the distribution of any energy, a reference for testing
// samplers.
package table

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Energy is an arbitrary log-density, one number per state. Its gradient is that of the multilinear
// extension U(z) = Σ_x U(x) Π_i z[i,x_i], so g[i,v] is U with x_i := v: differences are exact for one
// site but not for several at once. It is immutable and safe for concurrent use.
type Energy struct {
	space  *energies.Space
	logp   []float64
	lowest float64 // smallest finite entry, used instead of -Inf in gradients
}

var _ energies.Differentiable = (*Energy)(nil)

// New returns the energy with U(x) = logp[Index(sp, x)] in nats; -Inf means probability zero. Entries
// of states that are not allowed are ignored. logp is retained. Errors are *energies.SpaceError.
func New(sp *energies.Space, logp []float64) (*Energy, error) {
	if err := sp.Check(); err != nil {
		return nil, err
	}
	want := 1
	for range sp.Sites {
		if want *= sp.Values; want > len(logp) {
			break
		}
	}
	if len(logp) != want {
		return nil, &energies.SpaceError{Site: -1, Reason: fmt.Sprintf("a table of %d states; the space has at least %d", len(logp), want)}
	}
	e := &Energy{space: sp, logp: logp, lowest: math.Inf(1)}
	for _, u := range logp {
		if !math.IsInf(u, -1) {
			e.lowest = min(e.lowest, u)
		}
	}
	return e, nil
}

// index returns the number of a state of sp, allowed or not: its codes read as digits, the first site
// being the most significant.
func index(sp *energies.Space, x []int32) int {
	k := 0
	for _, v := range x {
		k = k*sp.Values + int(v)
	}
	return k
}

// Space implements energies.Energy.
func (e *Energy) Space() *energies.Space { return e.space }

// LogDensity implements energies.Energy.
func (e *Energy) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = e.logp[index(e.space, x.Chain(c))]
	}
	return ctx.Err()
}

// LogDensityGrad implements energies.Differentiable. Entries of -Inf in the gradient are replaced by
// the smallest finite entry of the table.
func (e *Energy) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	d, s := e.space.Sites, e.space.Values
	for c := range u {
		k := index(e.space, x.Chain(c))
		u[c] = e.logp[k]
		stride := len(e.logp)
		for i, cur := range x.Chain(c) {
			stride /= s
			for v := range s {
				g[(c*d+i)*s+v] = float32(max(e.logp[k+(v-int(cur))*stride], e.lowest))
			}
		}
	}
	return ctx.Err()
}

// LogConditional implements energies.Conditional.
func (e *Energy) LogConditional(ctx context.Context, lp []float64, site int, x energies.Batch) error {
	s, stride := e.space.Values, len(e.logp)
	for range site + 1 {
		stride /= s
	}
	for c := range x.Chains() {
		k, cur := index(e.space, x.Chain(c)), int(x.Chain(c)[site])
		for v := range s {
			lp[c*s+v] = math.Inf(-1)
			if e.space.Allows(site, int32(v)) {
				lp[c*s+v] = e.logp[k+(v-cur)*stride]
			}
		}
	}
	return ctx.Err()
}
