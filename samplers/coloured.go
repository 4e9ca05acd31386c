package samplers

import (
	"context"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies/logistic"
)

// A sweep of coloured Gibbs asks for the conditionals of all sites of a colour, of all chains, in one query, and then
// draws these sites.

// colourJob makes steps of coloured Gibbs.
type colourJob struct {
	workers Workers
	draw    func(w *Worker, c int) // of drawChain, bound once
	kernel  *Gibbs
	state   *State
	sites   []int32 // to draw
	colour  int64   // number of the colour in the whole run
	finite  []bool  // conditionals of the colour, [chain]
}

// step makes a step of all chains.
func (j *colourJob) step(ctx context.Context, k *Gibbs, s *State, info *Info) error {
	n := s.Chains()
	if j.draw == nil {
		j.draw = j.drawChain
	}
	j.kernel, j.state, j.finite = k, s, resize(j.finite, n)
	all := k.coloured.Colours()
	colours := int64(len(all))
	perStep := int64(k.Sweeps()) * colours
	for number := range perStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		j.sites, j.colour = all[number%colours], s.Step*perStep+number
		k.lp = resize(k.lp, n*len(j.sites)*s.X.Space.Values)
		if err := k.coloured.LogConditionals(ctx, k.lp, j.sites, k.next.X); err != nil {
			return err
		}
		j.workers.Each(s, j.draw)
		if c := slices.Index(j.finite, false); c >= 0 && !s.RejectNonFinite {
			return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), slices.Clone(k.next.X.Chain(c))}
		}
	}
	if err := k.Target.LogDensity(ctx, k.next.U, k.next.X); err != nil {
		return err
	}
	if err := s.Reject(&k.next); err != nil {
		return err
	}
	for c := range n {
		info.Accept[c], info.Accepted[c] = 1, true
	}
	info.Evaluations = Counts{Density: int64(n), Conditional: int64(n * k.updates)}
	s.Commit(&k.next, info)
	return nil
}

// drawChain draws the sites of the colour in chain c. A site without a finite conditional is left as it is.
func (j *colourJob) drawChain(w *Worker, c int) {
	s, n := j.state, len(j.sites)*j.state.X.Space.Values
	x, beta, values := j.kernel.next.X.Chain(c), s.InverseTemperature(c), s.X.Space.Values
	w.Reset(s.Seed, s.ChainIDs[c], j.colour, UseProposal)
	weight, lp := w.Row(values), j.kernel.lp[c*n:(c+1)*n]
	j.finite[c] = true
	for m, site := range j.sites {
		row := lp[m*values : (m+1)*values]
		if values == 2 && math.Abs(row[1]-row[0]) <= math.MaxFloat64 { // the common case, at a third of the time
			x[site] = logistic.Draw(w.Float64(), beta*(row[1]-row[0]))
		} else if exponentiate(weight, row, beta) {
			x[site] = int32(w.Categorical(weight))
		} else {
			j.finite[c] = false
		}
	}
}
