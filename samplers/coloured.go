package samplers

import (
	"context"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// A sweep of coloured Gibbs asks for the conditionals of all sites of a colour in all chains in
// one query, then draws these sites, chains in parallel. A chain draws a sweep from one stream.

// colourJob is one colour of a sweep.
type colourJob struct {
	workers Workers
	draw    func(w *Worker, c int)
	kernel  *Gibbs
	state   *State
	sites   []int32
	first   bool     // colour of the sweep
	number  int64    // of the sweep in the whole run
	streams []Worker // one a chain, which keeps its place between colours
	bad     []bool   // chains whose conditional was not finite
}

func (j *colourJob) init() { j.draw = j.chain }

// sweeps makes a step of coloured Gibbs.
func (k *Gibbs) sweeps(ctx context.Context, s *State, info *Info) error {
	j, n, values := &k.colour, s.Chains(), s.X.Space.Values
	perStep := int64(k.updates / s.X.Space.Sites)
	j.kernel, j.state = k, s
	if len(j.streams) < n {
		j.streams = make([]Worker, n)
	}
	j.bad = resize(j.bad, n)
	clear(j.bad)
	for sweep := range perStep {
		j.number = s.Step*perStep + sweep
		for colour, sites := range k.colours {
			if err := ctx.Err(); err != nil {
				return err
			}
			k.lp = resize(k.lp, n*len(sites)*values)
			q := energies.Query{Want: energies.Block, X: k.next.X, Sites: sites, LogP: k.lp}
			if err := k.Oracle.Answer(ctx, q); err != nil {
				return err
			}
			j.first, j.sites = colour == 0, sites
			j.workers.Each(s, j.draw)
		}
	}
	for c := range n {
		info.Accept[c], info.Accepted[c] = 1, true
		if j.bad[c] && !s.RejectNonFinite {
			return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), slices.Clone(k.next.X.Chain(c))}
		}
	}
	info.Evaluations.Conditional = int64(n * k.updates)
	if err := k.evaluateMoved(ctx, s, info); err != nil {
		return err
	}
	s.Commit(&k.next, info)
	return nil
}

// chain draws the sites of the colour in chain c.
func (j *colourJob) chain(w *Worker, c int) {
	k, s := j.kernel, j.state
	stream, values := &j.streams[c].Stream, s.X.Space.Values
	if j.first {
		stream.Reset(s.Seed, s.ChainIDs[c], j.number, UseProposal)
	}
	x, beta := k.next.X.Chain(c), s.InverseTemperature(c)
	lp := k.lp[c*len(j.sites)*values : (c+1)*len(j.sites)*values]
	if values == 2 {
		for m, site := range j.sites {
			t := beta * (lp[2*m+1] - lp[2*m])
			if t-t != 0 {
				if isZero(lp[2*m]) == isZero(lp[2*m+1]) || nonFinite(lp[2*m]) || nonFinite(lp[2*m+1]) {
					j.bad[c] = true
					continue
				}
			}
			x[site] = drawSigmoid(stream.Float64(), t)
		}
		return
	}
	weight := w.Row(values)
	for m, site := range j.sites {
		if !exponentiate(weight, lp[m*values:(m+1)*values], beta) {
			j.bad[c] = true
			continue
		}
		x[site] = int32(stream.Categorical(weight))
	}
}
