package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// gibbsPart is scratch for the part of the chains that share an evaluation.
type gibbsPart struct {
	x     energies.Batch
	u     []float64 // U, [state]; or log-conditionals, [state, value]
	chain []int     // the chain each state belongs to
	value []int32   // the value its site has in it; unused by ask
}

func (p *gibbsPart) reset(sp *energies.Space) {
	p.x = energies.Batch{Space: sp, Codes: p.x.Codes[:0], IDs: p.x.IDs[:0]}
	p.chain, p.value = p.chain[:0], p.value[:0]
}

// add appends a state of chain c. All states of a chain have its number, so that U of
// the one that is drawn is what a later evaluation gives.
func (p *gibbsPart) add(c int, id int64, x []int32) {
	p.x.Codes = append(p.x.Codes, x...)
	p.x.IDs = append(p.x.IDs, id)
	p.chain = append(p.chain, c)
}

// given fills k.lp from the conditional that the energy offers, site by site,
// since chains may be at different ones.
func (k *Gibbs) given(ctx context.Context, s *State, count *Counts) error {
	p, values := &k.part, s.X.Space.Values
	for site := range s.X.Space.Sites {
		p.reset(s.X.Space)
		for c, i := range k.site {
			if i == site {
				p.add(c, s.ChainIDs[c], s.X.Chain(c))
			}
		}
		if len(p.chain) == 0 {
			continue
		}
		p.u = resize(p.u, len(p.chain)*values)
		if err := k.energy.Answer(ctx, energies.Query{Want: k.ask, X: p.x, Site: site, LogP: p.u}); err != nil {
			return err
		}
		for j, c := range p.chain {
			copy(k.lp[c*values:(c+1)*values], p.u[j*values:(j+1)*values])
		}
		count.Conditional += int64(len(p.chain))
	}
	return nil
}

// evaluateMoved fills U of the chains whose state changed, so that U is always a
// function of the state, not of the path that led to it.
func (k *Gibbs) evaluateMoved(ctx context.Context, s *State, info *Info) error {
	p, d := &k.part, s.X.Space.Sites
	p.reset(s.X.Space)
	for c, i := range k.site {
		if k.next.X.Codes[c*d+i] != s.X.Codes[c*d+i] {
			p.add(c, s.ChainIDs[c], k.next.X.Chain(c))
		}
	}
	if len(p.chain) == 0 {
		return nil
	}
	p.u = resize(p.u, len(p.chain))
	if err := k.energy.LogDensity(ctx, p.u, p.x); err != nil {
		return err
	}
	info.Evaluations.Density += int64(len(p.chain))
	for j, c := range p.chain {
		k.next.U[c] = p.u[j]
		if isZero(p.u[j]) { // the model's conditional may lead where π is zero
			info.Accept[c], info.Accepted[c] = 0, false
		}
	}
	for c := range k.site {
		err := k.next.check(c, &k.next.X, s.ChainIDs[c], s.Step)
		if err != nil && !s.RejectNonFinite {
			return err
		}
		if err != nil {
			info.Accept[c], info.Accepted[c] = 0, false
		}
	}
	return nil
}

// enumerate fills k.lp with U at every allowed value of each chain's site, in
// batches of at most k.maxBatch states. The current value's U is known.
func (k *Gibbs) enumerate(ctx context.Context, s *State, count *Counts) error {
	sp, p := s.X.Space, &k.part
	p.reset(sp)
	for j := range k.lp {
		k.lp[j] = math.Inf(-1)
	}
	for c, i := range k.site {
		x := s.X.Chain(c)
		k.lp[c*sp.Values+int(x[i])] = s.U[c]
		list := sp.AllowedAt(i)
		if list == nil {
			list = k.all
		}
		for _, v := range list {
			if v == x[i] {
				continue
			}
			p.add(c, s.ChainIDs[c], x)
			p.x.Codes[len(p.x.Codes)-sp.Sites+i] = v
			p.value = append(p.value, v)
			if len(p.chain) < k.maxBatch {
				continue
			}
			if err := k.flush(ctx, s, count); err != nil {
				return err
			}
		}
	}
	return k.flush(ctx, s, count)
}

// flush evaluates the states collected in k.part and empties it.
func (k *Gibbs) flush(ctx context.Context, s *State, count *Counts) error {
	p := &k.part
	if len(p.chain) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.u = resize(p.u, len(p.chain))
	if err := k.energy.LogDensity(ctx, p.u, p.x); err != nil {
		return err
	}
	count.Density += int64(len(p.chain))
	for j, c := range p.chain {
		u := p.u[j]
		if nonFinite(u) {
			if !s.RejectNonFinite {
				return &NonFiniteError{s.ChainIDs[c], s.Step, "log-density", u, cloneCodes(p.x, j)}
			}
			u = math.Inf(-1)
		}
		k.lp[c*s.X.Space.Values+int(p.value[j])] = u
	}
	p.reset(s.X.Space)
	return nil
}
