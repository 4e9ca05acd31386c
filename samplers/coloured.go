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
	most     int       // sites of the largest colour
	whole    bool      // the energy prefers all chains in one query
	baseline bool      // the last conditionals give U
	logistic bool      // the energy computes probabilities of code 1
	odds     []float32 // of code 1, at β = 1, and
	one      []float32 // its probabilities, [chain, index]
	betas    []float64 // [chain]
	streams  []Worker  // one a chain, which keeps its place between colours
	failed   firstError
}

func (j *colourJob) init(can energies.Capabilities) {
	j.part, j.whole, j.baseline, j.logistic = j.sweep, !can.Divisible, can.Baseline, can.Logistic
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
	if j.logistic {
		j.odds, j.one, j.betas = resize(j.odds, n*j.most), resize(j.one, n*j.most), resize(j.betas, n)
		for c := range n {
			j.betas[c] = s.InverseTemperature(c)
		}
	} else {
		k.lp = resize(k.lp, n*j.most*s.X.Space.Values)
	}
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
			q := energies.Query{Want: energies.Block, X: x, Sites: sites}
			if j.baseline && colour == len(k.colours)-1 {
				q.U = u
			}
			if row := len(sites); j.logistic {
				q.Odds, q.Probability, q.Beta = j.odds[lo*j.most:][:(hi-lo)*row], j.one[lo*j.most:][:(hi-lo)*row], j.betas[lo:hi]
			} else {
				q.LogP = k.lp[lo*j.most*values:][:(hi-lo)*row*values]
			}
			if err := k.Oracle.Answer(j.ctx, q); err != nil {
				return err
			}
			for c := lo; c < hi; c++ {
				if colour == 0 {
					j.streams[c].Reset(s.Seed, s.ChainIDs[c], s.Step*perStep+sweep, UseProposal)
				}
				if !j.draw(c, c-lo, &q) && !s.RejectNonFinite {
					return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), slices.Clone(k.next.X.Chain(c))}
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

// draw draws the sites of a colour in chain c from the answer to q, in which it has row at, and completes U if
// q asks for that. It returns false if a conditional is not finite; its site is left as it is.
func (j *colourJob) draw(c, at int, q *energies.Query) bool {
	s, stream, n := j.state, &j.streams[c], len(q.Sites)
	x, beta, values, good := j.kernel.next.X.Chain(c), s.InverseTemperature(c), s.X.Space.Values, true
	if j.logistic {
		good = drawProbabilities(x, q.Sites, q.Probability[at*n:(at+1)*n], stream)
		if q.U != nil {
			u := q.U[at]
			for m, t := range q.Odds[at*n : (at+1)*n] {
				u += float64(t) * float64(x[q.Sites[m]])
			}
			q.U[at] = u
		}
		return good
	}
	lp := q.LogP[at*n*values : (at+1)*n*values]
	if values == 2 {
		good = drawOdds(x, q.Sites, lp, beta, stream)
	} else {
		good = drawRows(x, q.Sites, lp, beta, stream)
	}
	if q.U != nil {
		for m, site := range q.Sites {
			q.U[at] += lp[m*values+int(x[site])] - lp[m*values]
		}
	}
	return good
}

// drawRows draws sites from their log-conditionals, [index, value].
func drawRows(x, sites []int32, lp []float64, beta float64, stream *Worker) bool {
	values, good := len(lp)/len(sites), true
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

// drawProbabilities draws two-valued sites from the probabilities of code 1, as drawOdds does.
func drawProbabilities(x, sites []int32, p []float32, w *Worker) bool {
	bits, strange := uint64(0), float32(0)
	for m, site := range sites {
		if m%4 == 0 {
			bits = w.Uint64()
		}
		r, scaled := int32(bits&0xffff), p[m]*(1<<16)
		bits >>= 16
		high := int32(scaled)
		strange += 0 * scaled // NaN remains
		v := int32(uint32(r-high) >> 31)
		if r == high {
			v = logistic.Below(w.Float64(), float64(scaled-float32(high)))
		}
		x[site] = v
	}
	return strange == 0
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
