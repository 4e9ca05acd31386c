package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// blockLen is the number of values whose tilt is summed before a draw looks
// closer: short enough to scan, long enough that few sums are kept.
const blockLen = 256

// smallestTilt replaces the tilt of a current value that underflowed, in
// forward and backward probabilities alike, so that ratios to it stay finite.
const smallestTilt = math.SmallestNonzeroFloat32

// Local is what a kernel keeps of the energy at a batch of states: U, and the
// first-order weights w[i,v] = exp(½β·d[i,v]) of locally informed proposals,
// either from the gradient or from the energy's own softmax of half of it. U and
// Grad are raw, at β = 1, so that a later step may read them at another β.
type Local struct {
	// U is the log-density, [chain], in nats.
	U []float64
	// Grad is ∂U/∂onehot, [chain, site, value]; nil where Tilt serves alone or the
	// kernel needs no gradient.
	Grad []float32
	// Tilt is softmax_v(½β·g[i,v]), [chain, site, value]; nil where Grad serves.
	Tilt []float32

	rest  []float64 // log Σ w[i,v] over v ≠ x_i, [chain, site]
	block []float64 // sums of Tilt over blocks without x_i, [chain, site, block]
	half  float64   // ½β, the factor of d in w: ½ but in annealed runs
	embed []float32 // ∂U/∂embedding, [chain, site, width]; of PEZ alone
}

// gradient evaluates an energy in the form that Local keeps.
type gradient struct {
	energy  energies.Oracle
	tilts   bool      // the energy computes tilts, at β = 1
	tempers bool      // and at any β
	spare   []float32 // for a tilt at another β
	betas   []float64 // [chain]
}

// newGradient checks that e has a gradient. It is read tilted where e offers
// that, unless dense is set.
func newGradient(sampler string, e energies.Energy, dense bool) (gradient, error) {
	g := gradient{energy: energies.AsOracle(e)}
	can := g.energy.Capabilities().Answers
	if !can.Has(energies.Gradient) {
		return gradient{}, &energies.UnsupportedError{Who: "samplers: " + sampler, Want: energies.Gradient}
	}
	g.tilts, g.tempers = !dense && can.Has(energies.Tilt), !dense && can.Has(energies.Temper)
	return g, e.Space().Check()
}

// Energy implements Kernel.
func (g *gradient) Energy() energies.Energy { return g.energy }

// Init implements Kernel.
func (g *gradient) Init(ctx context.Context, s *State) error {
	if err := g.evalFor(ctx, &s.Local, s.X, s); err != nil {
		return err
	}
	if err := checkInit(s); err != nil {
		return err
	}
	s.Evaluations.Gradient += int64(s.Chains())
	return nil
}

// eval writes what there is to know of the energy at x to l, which is undefined
// on error.
func (g *gradient) eval(ctx context.Context, l *Local, x energies.Batch) error {
	n := len(x.Codes) * x.Space.Values
	l.U, l.half = resize(l.U, x.Chains()), 0.5
	if !g.tilts {
		l.Grad, l.Tilt = resize(l.Grad, n), nil
		if err := g.energy.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: l.U, Grad: l.Grad}); err != nil {
			return err
		}
	} else {
		l.Tilt, l.Grad = resize(l.Tilt, n), nil
		if err := g.energy.Answer(ctx, energies.Query{Want: energies.Tilt, X: x, U: l.U, Tilt: l.Tilt}); err != nil {
			return err
		}
	}
	l.sum(x)
	return nil
}

// sum fills what is derived from Tilt or Grad, each row from itself alone.
func (l *Local) sum(x energies.Batch) {
	rows, values := len(x.Codes), x.Space.Values
	l.rest = resize(l.rest, rows)
	if l.Tilt != nil {
		l.block = resize(l.block, rows*blocks(values))
	}
	if rows*values < serialWork {
		l.sumRows(x, 0, rows) // without a closure: no allocation
		return
	}
	parallel(rows, rows*values, func(_, lo, hi int) { l.sumRows(x, lo, hi) })
}

// sumRows is sum for the rows (chain, site) in [lo, hi).
func (l *Local) sumRows(x energies.Batch, lo, hi int) {
	if l.Tilt != nil {
		l.sumTilt(x, lo, hi)
		return
	}
	l.sumGrad(x, lo, hi)
}

// sumGrad fills rest for the rows (chain, site) in [lo, hi) from Grad.
func (l *Local) sumGrad(x energies.Batch, lo, hi int) {
	values := x.Space.Values
	for r := lo; r < hi; r++ {
		g, cur := l.Grad[r*values:(r+1)*values], x.Codes[r]
		list := x.Space.AllowedAt(r % x.Space.Sites)
		if values == 2 && list == nil { // one other value: nothing to sum
			l.rest[r] = l.half * (float64(g[1-cur]) - float64(g[cur]))
			continue
		}
		l.rest[r] = logSumOthers(g, list, cur, l.half)
	}
}

// logSumOthers is log Σ exp(half·(g_v - g_cur)) over the listed v ≠ cur (all v where
// list is nil), and -Inf where there is none.
func logSumOthers(g []float32, list []int32, cur int32, half float64) float64 {
	top := math.Inf(-1)
	each(len(g), list, func(v int32) {
		if x := float64(g[v]); v != cur && !(x <= top) {
			top = x // NaN ends up here too, and stays
		}
	})
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	each(len(g), list, func(v int32) {
		if v != cur {
			sum += math.Exp(half * (float64(g[v]) - top))
		}
	})
	return math.Log(sum) + half*(top-float64(g[cur]))
}

// each calls f for the listed values, or for all of them where list is nil.
func each(values int, list []int32, f func(v int32)) {
	if list == nil {
		for v := range int32(values) {
			f(v)
		}
		return
	}
	for _, v := range list {
		f(v)
	}
}

// logWeight is log w[i,v] = ½β·d[i,v] of row r = (chain, site), whose current
// value is cur.
func (l *Local) logWeight(r, values int, cur, v int32) float64 {
	if l.Tilt == nil {
		return l.half * (float64(l.Grad[r*values+int(v)]) - float64(l.Grad[r*values+int(cur)]))
	}
	row := l.Tilt[r*values : (r+1)*values]
	return math.Log(float64(row[v])) - math.Log(float64(max(row[cur], smallestTilt)))
}

// pick returns the value v ≠ cur of row r at which the cumulative share of
// Σ w[i,v] passes u. It must not be called where rest is -Inf.
func (l *Local) pick(sp *energies.Space, r int, cur int32, u float64) int32 {
	if sp.Values == 2 {
		return 1 - cur
	}
	if l.Tilt != nil {
		return l.pickTilt(sp.Values, r, cur, u)
	}
	g := l.Grad[r*sp.Values : (r+1)*sp.Values]
	base := l.half*float64(g[cur]) + l.rest[r]
	last, found := cur, false
	each(sp.Values, sp.AllowedAt(r%sp.Sites), func(v int32) {
		if found || v == cur {
			return
		}
		if w := math.Exp(l.half*float64(g[v]) - base); w > 0 {
			last = v
			u -= w
			found = u < 0
		}
	})
	return last
}

// check returns a *NonFiniteError where chain c of x cannot be a state: its U
// is NaN or +Inf, or its gradient is not finite. States of probability zero
// pass, whatever their gradient.
func (l *Local) check(c int, x *energies.Batch, id, step int64) error {
	u := l.U[c]
	if nonFinite(u) {
		return &NonFiniteError{Chain: id, Step: step, What: "log-density", Value: u, State: cloneCodes(*x, c)}
	}
	if l.rest == nil || isZero(u) {
		return nil
	}
	d := x.Space.Sites
	for _, rest := range l.rest[c*d : (c+1)*d] {
		if nonFinite(rest) {
			return &NonFiniteError{Chain: id, Step: step, What: "gradient", Value: u, State: cloneCodes(*x, c)}
		}
	}
	return nil
}

// copyChain copies chain c of a batch with d sites of S values from src.
func (l *Local) copyChain(src *Local, c, d, values int) {
	l.U[c] = src.U[c]
	copySpan(l.Grad, src.Grad, c, d*values)
	copySpan(l.Tilt, src.Tilt, c, d*values)
	copySpan(l.rest, src.rest, c, d)
	if l.Tilt != nil {
		copySpan(l.block, src.block, c, d*blocks(values))
	}
}

// copySpan copies the c-th span of n elements; nil slices are left alone.
func copySpan[T any](dst, src []T, c, n int) {
	if dst != nil {
		copy(dst[c*n:(c+1)*n], src[c*n:(c+1)*n])
	}
}
