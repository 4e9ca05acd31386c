package samplers

import (
	"context"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/logistic"
)

// A sweep of coloured Gibbs asks for the conditionals of all sites of a colour in one query, then draws
// these sites. Each worker takes some chains through all colours and sweeps of a step. A chain draws a
// sweep from one stream.

// colourJob makes steps of coloured Gibbs.
type colourJob struct {
	workers  Workers
	part     func(w *Worker, lo, hi int)
	kernel   *Gibbs
	state    *State
	ctx      context.Context
	most     int      // sites of the largest colour
	whole    bool     // the energy prefers all chains in one query
	baseline bool     // the last conditionals give U
	streams  []Worker // one a chain, which keeps its place between colours
	failed   firstError
}

func (j *colourJob) init(can energies.Capabilities) {
	j.part, j.whole, j.baseline = j.sweep, !can.Divisible, can.Baseline
	for _, sites := range can.Colours {
		j.most = max(j.most, len(sites))
	}
}

// step makes a step of all chains.
func (j *colourJob) step(ctx context.Context, k *Gibbs, s *State, info *Info) error {
	n := s.Chains()
	j.kernel, j.state, j.ctx = k, s, ctx
	if len(j.streams) < n {
		j.streams = make([]Worker, n)
	}
	k.lp = resize(k.lp, n*j.most*s.X.Space.Values)
	if j.whole {
		j.sweep(nil, 0, n)
	} else {
		j.workers.Parts(s, j.part)
	}
	if err := j.failed.take(); err != nil {
		return err
	}
	for c := range n {
		info.Accept[c], info.Accepted[c] = 1, true
	}
	info.Evaluations.Conditional = int64(n * k.updates)
	if !j.baseline {
		info.Evaluations.Density = int64(n)
	}
	s.Commit(&k.next, info)
	return nil
}

// sweep makes the sweeps of the chains in [lo, hi).
func (j *colourJob) sweep(_ *Worker, lo, hi int) {
	if err := j.sweeps(lo, hi); err != nil {
		j.failed.add(lo, err)
	}
}

func (j *colourJob) sweeps(lo, hi int) error {
	k, s := j.kernel, j.state
	x, u, values := k.next.X.Slice(lo, hi), k.next.U[lo:hi], s.X.Space.Values
	perStep := int64(k.updates / s.X.Space.Sites)
	for sweep := range perStep {
		for colour, sites := range k.colours {
			if err := j.ctx.Err(); err != nil {
				return err
			}
			row := len(sites) * values
			lp := k.lp[lo*j.most*values:][:(hi-lo)*row]
			q := energies.Query{Want: energies.Block, X: x, Sites: sites, LogP: lp}
			if j.baseline && colour == len(k.colours)-1 {
				q.U = u
			}
			if err := k.Oracle.Answer(j.ctx, q); err != nil {
				return err
			}
			for c := lo; c < hi; c++ {
				if colour == 0 {
					j.streams[c].Reset(s.Seed, s.ChainIDs[c], s.Step*perStep+sweep, UseProposal)
				}
				if !j.draw(c, sites, lp[(c-lo)*row:(c-lo+1)*row]) && !s.RejectNonFinite {
					return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), slices.Clone(k.next.X.Chain(c))}
				}
			}
			if q.U != nil {
				for c := range u {
					u[c] = raise(u[c], sites, x.Chain(c), lp[c*row:(c+1)*row])
				}
			}
		}
	}
	if !j.baseline {
		if err := k.Oracle.LogDensity(j.ctx, u, x); err != nil {
			return err
		}
	}
	return s.rejectPart(&k.next, lo, hi)
}

// raise returns U of a state, given its log-conditionals and U of the state with code 0 at the sites.
func raise(u float64, sites, x []int32, lp []float64) float64 {
	values := len(lp) / len(sites)
	for m, site := range sites {
		u += lp[m*values+int(x[site])] - lp[m*values]
	}
	return u
}

// draw draws the sites of a colour in chain c from their log-conditionals. It returns false if one of
// them is not finite; its site is left as it is.
func (j *colourJob) draw(c int, sites []int32, lp []float64) bool {
	s, stream := j.state, &j.streams[c]
	x, beta, values, good := j.kernel.next.X.Chain(c), s.InverseTemperature(c), s.X.Space.Values, true
	if values == 2 {
		return drawOdds(x, sites, lp, beta, stream)
	}
	weight := stream.Row(values)
	for m, site := range sites {
		if !exponentiate(weight, lp[m*values:(m+1)*values], beta) {
			good = false
			continue
		}
		x[site] = int32(stream.Categorical(weight))
	}
	return good
}

// drawOdds is draw for two values. Most sites need 16 random bits.
func drawOdds(x, sites []int32, lp []float64, beta float64, w *Worker) bool {
	good, bits := true, uint64(0)
	for m, site := range sites {
		if m%4 == 0 {
			bits = w.Uint64()
		}
		r, pair := uint32(bits&0xffff), lp[2*m:2*m+2:2*m+2]
		bits >>= 16
		t := beta * (pair[1] - pair[0])
		v, decided := logistic.DrawBits(r, t)
		if !decided {
			if t-t != 0 && (isZero(pair[0]) == isZero(pair[1]) || nonFinite(pair[0]) || nonFinite(pair[1])) {
				good = false
				continue
			}
			v = logistic.Draw((float64(r)+w.Float64())*0x1p-16, t)
		}
		x[site] = v
	}
	return good
}
