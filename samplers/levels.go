package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/logistic"
)

// Where an energy answers [energies.Level], a site is in one of few classes, by its log-odds and its
// code. What a kernel needs of a class is computed once, and a site costs a table look-up: it is
// drawn by comparing 16 random bits with a threshold, and more bits where they are equal.

// threshold is a probability p for comparison with 16 random bits: their number r is below p·2^16
// if it is below high, or equal to it and a further uniform number is below rest.
type threshold struct {
	high uint32
	rest float64
}

func newThreshold(p float64) threshold {
	high := math.Floor(p * (1 << 16))
	return threshold{uint32(high), p*(1<<16) - high}
}

// draw is 1 with probability p, given 16 random bits that are not equal to high.
func (t *threshold) draw(bits uint32) int32 {
	b := int32(0)
	if bits < t.high {
		b = 1
	}
	return b
}

// tie is 1 with probability p, given 16 bits equal to high.
func (t *threshold) tie(w *Worker) int32 { return logistic.Below(w.Float64(), t.rest) }

// levelMove is what the Langevin proposal does with sites of a class.
type levelMove struct {
	threshold            // of changing
	log       [2]float64 // log-probability of staying and of changing
}

// levelMoves are those of all classes, 2·level + code, for one step size and temperature.
type levelMoves struct {
	alpha, beta float64
	move        []levelMove
}

// levelLangevin is the proposal of [langevin] by levels.
type levelLangevin struct {
	schedule func(step int64) float64
	balance  Balance
	odds     []float64
	distance float64      // D² of the two values
	chains   []levelMoves // [chain]
}

// prepare makes room for a step.
func (l *levelLangevin) prepare(s *State) {
	if n := s.Chains(); len(l.chains) < n {
		l.chains = append(l.chains, make([]levelMoves, n-len(l.chains))...)
	}
}

// alpha returns the step size of chain c.
func (l *levelLangevin) alpha(s *State, c int) float64 {
	alpha := s.Var(StepSizeVar)[c]
	if l.schedule != nil {
		alpha *= l.schedule(s.Step)
	}
	return alpha
}

// change returns the log-odds of changing a site and the log-probability of not changing it, given the
// log-odds of its other code.
func (l *levelLangevin) change(odds, alpha, beta float64) (leave, stay float64) {
	leave = l.balance.Log(beta*odds) - l.distance/(2*alpha) - l.balance.Log(0)
	return leave, -max(leave, 0) - math.Log1p(math.Exp(-math.Abs(leave)))
}

// moves returns the table of chain c.
func (l *levelLangevin) moves(s *State, c int) []levelMove {
	alpha, beta, t := l.alpha(s, c), s.InverseTemperature(c), &l.chains[c]
	if t.move != nil && t.alpha == alpha && t.beta == beta {
		return t.move
	}
	t.alpha, t.beta, t.move = alpha, beta, resize(t.move, 2*len(l.odds))
	for k := range t.move {
		leave, stay := l.change(l.odds[k/2]*float64(1-2*(k%2)), alpha, beta)
		t.move[k] = levelMove{newThreshold(1 / (1 + math.Exp(-leave))), [2]float64{stay, stay + leave}}
	}
	return t.move
}

// Draw implements Proposal.
func (l *levelLangevin) Draw(w *Worker, s *State, c int, next []int32) float64 {
	moves, x, bits, logq := l.moves(s, c), s.X.Chain(c), uint64(0), 0.0
	levels := s.levelsOf(c)[:len(x)]
	next = next[:len(x)]
	for i, v := range x {
		if i%4 == 0 {
			bits = w.Uint64()
		}
		m := &moves[2*int(levels[i])+int(v)]
		flip := m.draw(uint32(bits & 0xffff))
		if uint32(bits&0xffff) == m.high {
			flip = m.tie(w)
		}
		bits >>= 16
		next[i] = v ^ flip
		logq += m.log[flip&1]
	}
	return logq
}

// LogReverse implements Proposal.
func (l *levelLangevin) LogReverse(_ *Worker, s *State, c int, next *Point) float64 {
	moves, x, logq := l.moves(s, c), s.X.Chain(c), 0.0
	y, levels := next.X.Chain(c)[:len(x)], next.levelsOf(c)[:len(x)]
	for i, v := range x {
		logq += moves[2*int(levels[i])+int(y[i])].log[(v^y[i])&1]
	}
	return logq
}

// levelsOf returns the levels of chain c, [site].
func (p *Point) levelsOf(c int) []uint8 {
	d := p.X.Space.Sites
	return p.levels[c*d : (c+1)*d]
}

// levelJob makes steps of coloured Gibbs by levels, each chain by itself.
type levelJob struct {
	workers Workers
	sweep   func(w *Worker, c int)
	kernel  *Gibbs
	state   *State
	info    *Info
	ctx     context.Context
	odds    []float64
	tables  []levelThresholds // [chain]
	packed  *packedGibbs      // nil: site by site
	errs    []error           // [chain]
}

// levelThresholds are of the code 1, by level, at an inverse temperature.
type levelThresholds struct {
	beta float64
	one  []threshold
}

// step makes a step of all chains.
func (j *levelJob) step(ctx context.Context, k *Gibbs, s *State, info *Info) error {
	n := s.Chains()
	if j.sweep == nil {
		if j.sweep = j.chain; j.packed != nil {
			j.sweep = j.packedChain
		}
	}
	if j.packed != nil {
		j.packed.prepare(s, &k.next)
	} else {
		copy(k.next.X.Codes, s.X.Codes)
		if len(j.tables) < n {
			j.tables = append(j.tables, make([]levelThresholds, n-len(j.tables))...)
		}
	}
	j.kernel, j.state, j.info, j.ctx, j.errs = k, s, info, ctx, resize(j.errs, n)
	j.workers.Each(s, j.sweep)
	for c, err := range j.errs {
		if err != nil {
			return err
		}
		info.Accept[c], info.Accepted[c] = 1, true
	}
	info.Evaluations.Conditional = int64(n * k.updates)
	info.Evaluations.Density = int64(n)
	s.Commit(&k.next, info)
	return nil
}

// thresholds returns the table of chain c.
func (j *levelJob) thresholds(c int) []threshold {
	t, beta := &j.tables[c], j.state.InverseTemperature(c)
	if t.one == nil || t.beta != beta {
		t.beta, t.one = beta, resize(t.one, len(j.odds))
		for k, odds := range j.odds {
			t.one[k] = newThreshold(1 / (1 + math.Exp(-beta*odds)))
		}
	}
	return t.one
}

// chain makes the sweeps of chain c and evaluates where they lead.
func (j *levelJob) chain(w *Worker, c int) {
	k, s, one := j.kernel, j.state, j.thresholds(c)
	at := k.next.X.Slice(c, c+1)
	perStep := int64(k.updates / s.X.Space.Sites)
	for sweep := range perStep {
		w.Reset(s.Seed, s.ChainIDs[c], s.Step*perStep+sweep, UseProposal)
		for _, sites := range k.colours {
			levels := w.Bytes(len(sites))
			if j.errs[c] = k.Oracle.Answer(j.ctx, energies.Query{Want: energies.Level, X: at, Sites: sites, Levels: levels}); j.errs[c] != nil {
				return
			}
			drawLevels(at.Codes, sites, levels, one, w)
		}
	}
	j.errs[c] = k.Oracle.LogDensity(j.ctx, k.next.U[c:c+1], at)
}

// drawLevels draws sites from the thresholds of their levels, [index].
func drawLevels(x, sites []int32, levels []uint8, one []threshold, w *Worker) {
	bits := uint64(0)
	for m, site := range sites {
		if m%4 == 0 {
			bits = w.Uint64()
		}
		t := &one[levels[m]]
		v := t.draw(uint32(bits & 0xffff))
		if uint32(bits&0xffff) == t.high {
			v = t.tie(w)
		}
		x[site] = v
		bits >>= 16
	}
}

// packedChain makes the sweeps of chain c.
func (j *levelJob) packedChain(w *Worker, c int) {
	k, s, x := j.kernel, j.state, j.kernel.next.X.Chain(c)
	state := j.packed.of(&k.next, c)
	copy(state, j.packed.of(&s.Point, c))
	perStep := int64(k.updates / len(x))
	for sweep := range perStep {
		w.Reset(s.Seed, s.ChainIDs[c], s.Step*perStep+sweep, UseProposal)
		k.next.U[c] = j.packed.sweep(w, c, state)
	}
	j.packed.unpack(x, state)
	j.info.Hops[c] = s.hops(&k.next, c)
}
