package samplers

import (
	"context"
	"math"
	"runtime"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Rates of SGDLD: with t = exp(β·d[i,v]) the rate of site i to value v is √t, which is
// the weight w[i,v] that Local keeps, or t/(1+t). Local.rest is log r_i in both.

// temperRates fills what is derived from l's gradient at the inverse temperature beta.
// On error l is as before.
func (k *SGDLD) temperRates(ctx context.Context, l *Local, x energies.Batch, beta float64) error {
	if !k.barker {
		return k.temper(ctx, l, x, beta)
	}
	l.half = 0.5 * beta
	rows, values := len(x.Codes), x.Space.Values
	l.rest = resize(l.rest, rows)
	if rows*values < serialWork {
		l.sumBarker(x, 0, rows) // without a closure: no allocation
		return nil
	}
	parallel(rows, rows*values, func(_, lo, hi int) { l.sumBarker(x, lo, hi) })
	return nil
}

// sumBarker fills rest for the rows (chain, site) in [lo, hi): NaN where a difference
// of gradients is not finite, which a rate below 1 would hide.
func (l *Local) sumBarker(x energies.Batch, lo, hi int) {
	values, beta := x.Space.Values, 2*l.half
	for r := lo; r < hi; r++ {
		g, cur := l.Grad[r*values:(r+1)*values], x.Codes[r]
		total := 0.0
		each(values, x.Space.AllowedAt(r%x.Space.Sites), func(v int32) {
			if v != cur {
				d := float64(g[v]) - float64(g[cur])
				total += barker(beta*d) + 0*d
			}
		})
		l.rest[r] = math.Log(total)
	}
}

// barker is t/(1+t) for log t.
func barker(logt float64) float64 { return 1 / (1 + math.Exp(-logt)) }

// pickRate returns the value of row r at which the cumulative share of its rates
// passes u.
func (k *SGDLD) pickRate(l *Local, sp *energies.Space, r int, cur int32, u float64) int32 {
	if !k.barker {
		return l.pick(sp, r, cur, u)
	}
	g, beta := l.Grad[r*sp.Values:(r+1)*sp.Values], 2*l.half
	target, last, found := u*math.Exp(l.rest[r]), cur, false
	each(sp.Values, sp.AllowedAt(r%sp.Sites), func(v int32) {
		if found || v == cur {
			return
		}
		if w := barker(beta * (float64(g[v]) - float64(g[cur]))); w > 0 {
			last = v
			target -= w
			found = target < 0
		}
	})
	return last
}

// propose draws k.next.X of every chain, given log h or log ε.
func (k *SGDLD) propose(s *State, logTime float64) {
	k.next.like(s)
	copy(k.next.X.Codes, s.X.Codes)
	jump := (*SGDLD).jumpSites
	if k.single {
		jump = (*SGDLD).jumpSingle
	}
	n, work := s.Chains(), len(s.X.Codes)*min(s.X.Space.Values, blockLen)
	if k.barker {
		work = len(s.X.Codes) * s.X.Space.Values
	}
	if work < serialWork { // without a closure: no allocation
		for c := range n {
			jump(k, &k.workers[0], s, c, logTime)
		}
		return
	}
	if p := runtime.GOMAXPROCS(0); p > len(k.workers) {
		k.workers = make([]rng.Stream, p)
	}
	parallel(n, work, func(worker, lo, hi int) {
		for c := lo; c < hi; c++ {
			jump(k, &k.workers[worker], s, c, logTime)
		}
	})
}

// jumpSites moves each site of chain c on its own: the process with its rates held
// fixed for the time ε, save that a site moves at most once.
func (k *SGDLD) jumpSites(w *rng.Stream, s *State, c int, logTime float64) {
	d := s.X.Space.Sites
	if k.polyak != nil {
		logTime -= logTotal(&s.Local, c, d)
	}
	w.Reset(s.Seed, s.ChainIDs[c], s.Step, useProposal)
	y := k.next.X.Chain(c)
	for i, cur := range y {
		rest := s.rest[c*d+i]
		if !math.IsInf(rest, -1) && w.Float64() < -math.Expm1(-math.Exp(logTime+rest)) {
			y[i] = k.pickRate(&s.Local, s.X.Space, c*d+i, cur, w.Float64())
		}
	}
}

// jumpSingle changes one site of chain c, or none.
func (k *SGDLD) jumpSingle(w *rng.Stream, s *State, c int, logTime float64) {
	d := s.X.Space.Sites
	total := logTotal(&s.Local, c, d)
	if math.IsInf(total, -1) {
		return
	}
	if k.polyak == nil {
		logTime += total // ε·Z, a probability up to 1
	}
	w.Reset(s.Seed, s.ChainIDs[c], s.Step, useProposal)
	if !(math.Log(w.Float64()) < logTime) {
		return
	}
	u, site := w.Float64(), -1
	for i, rest := range s.rest[c*d : (c+1)*d] {
		if share := math.Exp(rest - total); share > 0 {
			site = i
			if u -= share; u < 0 {
				break
			}
		}
	}
	y := k.next.X.Chain(c)
	y[site] = k.pickRate(&s.Local, s.X.Space, c*d+site, y[site], w.Float64())
}
