package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/logistic"
)

func init() {
	Register(Registration{
		Name:  "dula",
		Doc:   "discrete unadjusted Langevin: all sites move at once and no move is rejected",
		Paper: "Zhang, Liu, Liu 2022 (arXiv:2206.09914), algorithm 1 without the Metropolis step",
		Bias:  "near exp(U); the bias falls with the step size, to zero where U is linear in each site, else to a floor",
		Needs: energies.Gradient,
	}, NewDULA)
	Register(Registration{
		Name:       "dmala",
		Doc:        "discrete Metropolis-adjusted Langevin: all sites move at once",
		Paper:      "Zhang, Liu, Liu 2022 (arXiv:2206.09914), algorithm 1",
		Tunes:      "step-size",
		Needs:      energies.Gradient,
		Reversible: true,
	}, NewDMALA)
	Register(Registration{
		Name:       "ncg",
		Doc:        "norm-constrained gradient: the proposal of dmala under its other name",
		Paper:      "Rhodes, Gutmann 2022 (arXiv:2208.00040)",
		Tunes:      "step-size",
		Needs:      energies.Gradient,
		Reversible: true,
	}, NewNCG)
}

// DULAOptions are the options of DULA; the zero value has the defaults.
type DULAOptions struct {
	// StepSize is α; 0 means 0.1·D² of neighbouring values, at which the smallest move costs
	// 5 nats (0.1 for binary codes, as in the paper; 0.2 for categorical ones). It is never
	// adapted: there is no acceptance probability to adapt it to.
	StepSize float64 `flag:"step-size" default:"0.1 binary or ordinal, 0.2 categorical, 0.4 spin" doc:"step size α of the Langevin proposal"`
	// StepSchedule multiplies α in each step; see ParseSchedule. "" means 1.
	StepSchedule string `flag:"step-schedule" default:"1" doc:"factor of the step size in step t: 1..0.1@500 falls to 0.1 in step 500, cycle:10..1@50 starts anew every 50 steps"`
	// Balance is the balancing function of the proposal; "" means sqrt.
	Balance string `flag:"balance" default:"sqrt" choices:"sqrt,barker,min,max" doc:"balancing function g of the probability ratio t of a move: √t, t/(1+t), min(1,t) or max(1,t)"`
	// Dense reads the gradient itself where the energy offers its softmax or levels:
	// slower, and the oracle that the fast paths are tested against.
	Dense bool `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
	// Factors multiply α, [site] (appendix H of the paper); nil means 1. They are positive.
	Factors []float64
}

// DMALAOptions are the options of DMALA; the zero value has the defaults.
type DMALAOptions struct {
	// StepSize is α, the same in every chain. 0 adapts it in warm-up, chain by chain, to an
	// acceptance of TargetAcceptance, from 0.2·D² of neighbouring values (0.2 for binary
	// codes, as in the paper; 0.4 for categorical ones); without a warm-up it stays there.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"step size α of the Langevin proposal"`
	// StepSchedule, Balance and Dense are those of DULAOptions.
	StepSchedule string `flag:"step-schedule" default:"1" doc:"factor of the step size in step t: 1..0.1@500 falls to 0.1 in step 500, cycle:10..1@50 starts anew every 50 steps"`
	Balance      string `flag:"balance" default:"sqrt" choices:"sqrt,barker,min,max" doc:"balancing function g of the probability ratio t of a move: √t, t/(1+t), min(1,t) or max(1,t)"`
	Dense        bool   `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
	// Precondition multiplies α by a factor of each site (appendix H of the paper), which
	// warm-up adapts as it does α: the factor grows where proposals that change the site are
	// accepted more often than TargetAcceptance. The factors' geometric mean stays 1.
	Precondition bool `flag:"precondition" default:"false" doc:"adapt a step size for each site in warm-up"`
	// Factors are those of DULAOptions; they exclude Precondition.
	Factors []float64
}

// NCGOptions are the options of NCG: those of DMALA that it shares.
type NCGOptions struct {
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"step size α of the Langevin proposal"`
}

// NewDULA returns the discrete unadjusted Langevin algorithm (Zhang, Liu and Liu 2022) for
// e, which must have a gradient: the discrete Langevin proposal, always accepted, except
// that a state of probability zero is not entered. One gradient a step.
//
// Its law differs from π. Where U is linear in the one-hot code of each site (as for
// log-quadratic U, theorem 5.1) the bias vanishes with α; elsewhere it falls to a floor,
// because d[i,v] is only the first-order estimate of what U gains. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func NewDULA(e energies.Energy, o DULAOptions) (*Metropolis, error) {
	return newLangevin("dula", e, DMALAOptions{StepSize: o.StepSize, StepSchedule: o.StepSchedule, Balance: o.Balance, Dense: o.Dense, Factors: o.Factors}, 0.1)
}

// NewDMALA returns the discrete Metropolis-adjusted Langevin algorithm (Zhang, Liu and Liu
// 2022) for e, which must have a gradient. Left out: minibatch gradients. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func NewDMALA(e energies.Energy, o DMALAOptions) (*Metropolis, error) {
	return newLangevin("dmala", e, o, 0.2)
}

// NewNCG returns the norm-constrained gradient sampler (Rhodes and Gutmann 2022), whose
// proposal is that of DMALA. Errors are those of NewDMALA.
func NewNCG(e energies.Energy, o NCGOptions) (*Metropolis, error) {
	return newLangevin("ncg", e, DMALAOptions{StepSize: o.StepSize}, 0.2)
}

// newLangevin builds all. Without a step size it is start times D² of neighbours, so that
// the penalty of the smallest move is the same in every kind of space.
func newLangevin(name string, e energies.Energy, o DMALAOptions, start float64) (*Metropolis, error) {
	balance, err := parseBalance(name, o.Balance)
	if err != nil {
		return nil, err
	}
	schedule, err := stepSchedule(name, o.StepSchedule)
	if err != nil {
		return nil, err
	}
	eval, err := NewInformed(name, e, balance, o.Dense)
	if err != nil {
		return nil, err
	}
	tuner := &Tuner{Var: StepSizeVar, Start: o.StepSize}
	if o.StepSize == 0 {
		tuner.Start = start * e.Space().SquaredDistance(0, 1)
	}
	if err := checkPositive(name, "step-size", tuner.Start); err != nil {
		return nil, err
	}
	k := &Metropolis{Evaluator: eval, Unadjusted: name == "dula" || name == "drexel"}
	k.adapt(tuner, !k.Unadjusted && o.StepSize == 0)
	if err := checkFactors(name, o, e.Space().Sites); err != nil {
		return nil, err
	}
	if can := k.Oracle.Capabilities(); can.Answers.Has(energies.Level) && !o.Dense && o.Factors == nil && !o.Precondition {
		k.levels = true
		l := &levelLangevin{schedule: schedule, balance: balance, odds: can.Odds, distance: e.Space().SquaredDistance(0, 1)}
		if p := newPacking(can.Pairs, e.Space().Sites, nil); p != nil {
			k.packed = newPackedLangevin(*l, p, &k.next)
			k.Proposal, k.Prepare = k.packed, k.packed.prepare
		} else {
			k.Proposal, k.Prepare = l, l.prepare
		}
		return k, nil
	}
	proposal := langevin{schedule: schedule, fixed: o.Factors}
	if o.Precondition {
		proposal.scales = &siteScales{}
		k.Prepare, k.Adapt = proposal.scales.prepare, proposal.scales.adapt
		k.Specs = append(k.Specs, VarSpec{Name: PreconditionerVar, Shape: []int{e.Space().Sites}, Start: 1}, VarSpec{Name: PreconditionerVar + "_tuning"})
	}
	proposal.blind = k.Unadjusted
	k.Proposal = proposal
	return k, nil
}

// langevin is the discrete Langevin proposal of Zhang, Liu and Liu (2022), eq. 4: all sites
// move at once,
//
//	q_i(v|x) ∝ g(exp(β·d[i,v])) · exp(-D²(v,x_i)/(2α)),
//
// with g = √, hence exp(½β·d[i,v]), in the paper. The current value has weight g(1) = 1 (½
// for Barker), so a site leaves it with odds e^t, t = log Σ_{v≠x_i} of the above - log g(1),
// for a value in proportion to its weight. Where D² is one number off the current value
// (binary, spin, categorical), t is LogLeave minus a constant, so nothing is summed at draw
// time; ordinal rows are weighted value by value.
type langevin struct {
	schedule func(step int64) float64 // factor of α; nil: 1
	fixed    []float64                // factors of the sites; nil: 1, or
	scales   *siteScales              // adapted ones
	blind    bool                     // nobody asks for log-probabilities
}

// alpha returns the step size of chain c, and the factors of its sites or nil.
func (l langevin) alpha(s *State, c int) (float64, []float64) {
	alpha := s.Var(StepSizeVar)[c]
	if l.schedule != nil {
		alpha *= l.schedule(s.Step)
	}
	if l.scales == nil {
		return alpha, l.fixed
	}
	d := s.X.Space.Sites
	return alpha, s.Var(PreconditionerVar)[c*d : (c+1)*d]
}

// Draw implements Proposal. The normaliser of the proposal at x is known from the step that led
// to x, if α is the same.
func (l langevin) Draw(w *Worker, s *State, c int, next []int32) float64 {
	sp := s.X.Space
	alpha, scale := l.alpha(s, c)
	penalty := sp.SquaredDistance(0, 1)/(2*alpha) + s.balance.Log(0)
	if scale == nil && !isOrdinal(sp) {
		return l.drawSites(w, s, c, next, penalty)
	}
	ordinal, logq, norm := isOrdinal(sp), 0.0, logistic.NewSum()
	row := w.Row(sp.Values)
	for i, cur := range s.X.Chain(c) {
		next[i] = cur
		if scale != nil {
			penalty = sp.SquaredDistance(0, 1)/(2*alpha*scale[i]) + s.balance.Log(0)
		}
		var t float64 // log odds of leaving
		if ordinal {
			t = l.ordinal(row, &s.Point, c, i, penalty)
		} else {
			t = s.LogLeave(c, i) - penalty
		}
		norm.Add(t)
		if logistic.Draw(w.Float64(), t) == 0 {
			continue
		}
		if u := w.Float64(); ordinal {
			next[i] = pickLog(row, t, u)
			logq += row[next[i]]
		} else {
			next[i] = s.Pick(c, i, u)
			logq += s.LogWeight(c, i, next[i]) - penalty
		}
	}
	if l.scales != nil {
		l.scales.note(s, c, next)
	}
	return logq - norm.Value()
}

// drawSites is Draw where all sites have one penalty.
func (l langevin) drawSites(w *Worker, s *State, c int, next []int32, penalty float64) float64 {
	if s.X.Space.Values == 2 {
		return l.drawPairs(w, s, c, next, penalty)
	}
	logq := 0.0
	copy(next, s.X.Chain(c))
	for i, leave := range s.LogLeaves(c) {
		if logistic.Draw(w.Float64(), leave-penalty) == 1 {
			next[i] = s.Pick(c, i, w.Float64())
			logq += s.LogWeight(c, i, next[i]) - penalty
		}
	}
	if l.blind {
		return 0
	}
	return logq - s.logNormaliser(c, penalty)
}

// drawPairs is drawSites for two values. A site is drawn by comparing 16 random bits with its
// probability to change, and more bits where they are equal. There is no branch on what is drawn, which
// could not be predicted.
func (l langevin) drawPairs(w *Worker, s *State, c int, next []int32, penalty float64) float64 {
	logq, bits := -s.logNormaliser(c, penalty), uint64(0)
	x, leaves := s.X.Chain(c)[:len(next)], s.LogLeaves(c)[:len(next)]
	for i, p := range s.flips[c*len(x) : (c+1)*len(x)][:len(next)] {
		if i%4 == 0 {
			bits = w.Uint64()
		}
		r, scaled := int32(bits&0xffff), p*(1<<16)
		high := int32(scaled)
		bits >>= 16
		flip := int32(uint32(r-high) >> 31) // 1 if r is below
		if r == high {
			flip = logistic.Below(w.Float64(), scaled-float64(high))
		}
		next[i] = x[i] ^ flip
		logq += only(flip, leaves[i]-penalty)
	}
	return logq
}

// only returns x if flip is 1, and 0 if it is 0, without a branch.
func only(flip int32, x float64) float64 {
	return math.Float64frombits(math.Float64bits(x) & -uint64(flip))
}

// LogReverse implements Proposal.
func (l langevin) LogReverse(w *Worker, s *State, c int, next *Point) float64 {
	sp, x := s.X.Space, s.X.Chain(c)
	alpha, scale := l.alpha(s, c)
	penalty := sp.SquaredDistance(0, 1)/(2*alpha) + next.balance.Log(0)
	if scale == nil && !isOrdinal(sp) {
		logq := -next.logNormaliser(c, penalty)
		if sp.Values == 2 {
			y, leaves := next.X.Chain(c)[:len(x)], next.LogLeaves(c)[:len(x)]
			for i, v := range x {
				logq += only(v^y[i], leaves[i]-penalty)
			}
			return logq
		}
		for i, cur := range next.X.Chain(c) {
			if x[i] != cur {
				logq += next.LogWeight(c, i, x[i]) - penalty
			}
		}
		return logq
	}
	ordinal, logq, norm := isOrdinal(sp), 0.0, logistic.NewSum()
	row := w.Row(sp.Values)
	for i, cur := range next.X.Chain(c) {
		if scale != nil {
			penalty = sp.SquaredDistance(0, 1)/(2*alpha*scale[i]) + next.balance.Log(0)
		}
		if ordinal {
			norm.Add(l.ordinal(row, next, c, i, penalty))
			if x[i] != cur {
				logq += row[x[i]]
			}
			continue
		}
		norm.Add(next.LogLeave(c, i) - penalty)
		if x[i] != cur {
			logq += next.LogWeight(c, i, x[i]) - penalty
		}
	}
	return logq - norm.Value()
}

// logNormaliser is Σ_i log(1 + exp(LogLeave_i - penalty)) of chain c, computed once for each
// state and penalty. It fills the probabilities p.flips too.
func (p *Point) logNormaliser(c int, penalty float64) float64 {
	if at := &p.norms[c]; at.penalty != penalty || !at.known {
		leaves := p.LogLeaves(c)
		*at = normaliser{logistic.Sigmoids(p.flips[c*len(leaves):(c+1)*len(leaves)], leaves, penalty), penalty, true}
	}
	return p.norms[c].value
}

// normaliser is what logNormaliser remembers.
type normaliser struct {
	value, penalty float64
	known          bool
}

// ordinal fills row with the log-weights of site i, relative to that of the current value,
// and returns their log-sum. penalty is that of a neighbouring value, at which D² = 1.
func (l langevin) ordinal(row []float64, p *Point, c, i int, penalty float64) float64 {
	p.LogWeights(row, c, i)
	cur, start := p.X.Chain(c)[i], p.balance.Log(0)
	for v := range row {
		row[v] -= p.X.Space.SquaredDistance(cur, int32(v))*(penalty-start) + start
	}
	return logSumExp(row)
}

// isOrdinal says that D² differs between values other than the current one.
func isOrdinal(sp *energies.Space) bool { return sp.Kind == energies.Ordinal && sp.Values > 2 }

// pickLog returns the value at which the cumulative share of the log-weights in row, whose
// log-sum is total, passes u.
func pickLog(row []float64, total, u float64) int32 {
	last := 0
	for v, t := range row {
		if w := math.Exp(t - total); w > 0 {
			last = v
			if u -= w; u < 0 {
				break
			}
		}
	}
	return int32(last)
}
