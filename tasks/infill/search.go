package infill

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/samplers/diag"
)

// SearchOptions are the options of [Problem.Search]. Zero fields mean defaults, which
// were chosen by measurement; see README.md.
type SearchOptions struct {
	// Top is the number of sentences to return, 5 by default.
	Top int
	// Beam is the width of the beams: by default 1000 divided by the square of the number of blanks, at
	// most 160, and at least 230 divided by their number and 9; two thirds of that where there are no rough
	// predictions. Beams of an eighth of it come first where that is 2 or more.
	Beam int
	// Pool is the number of best fillings whose neighbours are visited, 20 by default and
	// at least Top.
	Pool int
	// Moves is the number of neighbours of a filling that are tried, 20 by default.
	Moves int
	// NoPairs changes one word at a time only, not also two words together.
	NoPairs bool
	// Rank is the number that sentences are ordered by, U by default. A search that is cut short does not get to ByChain.
	Rank Rank
	// TimeLimit ends the search with the best sentences so far, the most probable word of every
	// blank at least; 0 means no limit. A search that is not cut short gives the same
	// sentences every time.
	TimeLimit time.Duration
	// Progress, which may be nil, is called between runs of the model.
	Progress func(Progress)

	keep       int  // size of the pool, at least Pool
	bothOrders bool // see pairsOf
}

// Progress says how far a search is.
type Progress struct {
	// Stage is "first fill", "neighbours", "pairs of blanks", or as "beam of 40 from the left".
	Stage string
	// Done and Total count the blanks of a beam, or the fillings of the pool.
	Done, Total int
	// Best is the best filling so far.
	Best string
	// U is its log-density in nats, not divided by the temperature.
	U float64
}

// StoppedTime is [Answer.Stopped] of a search that reached its time limit.
const StoppedTime = "time limit"

// Answer is what a search found.
type Answer struct {
	// Sentences are the best distinct sentences, best first.
	Sentences []Sentence
	// Sequences is the number of sequences that went through the model.
	Sequences int64
	// Seconds is the time of the search, without loading the model.
	Seconds float64
	// Stopped is "" for a complete search, else [StoppedTime] or "interrupted".
	Stopped string
}

func (o *SearchOptions) defaults(blanks int, rough bool) {
	if o.Top == 0 {
		o.Top = 5
	}
	if o.Beam == 0 {
		if o.Beam = max(9, 230/blanks, min(160, 1000/(blanks*blanks))); !rough {
			o.Beam = o.Beam * 2 / 3
		}
	}
	if o.Pool == 0 {
		o.Pool = 20
	}
	if o.Moves == 0 {
		o.Moves = 20
	}
	o.Pool = max(o.Pool, o.Top)
	o.Beam = max(o.Beam, o.Top)
	o.keep = max(o.keep, o.Pool)
}

// keptWords is the least number of words kept of each prediction: those that beams and moves
// choose from. Wider beams keep as many as their width.
const keptWords = 40

// roughBlanks is the number of blanks from which a search looks for fillings by rough predictions.
// With one, the search is one prediction.
const roughBlanks = 2

// search is a search under way.
type search struct {
	p    *Problem
	o    SearchOptions
	t    *predictions
	seen map[string]bool // fillings that were tried
	pool []filling       // best first
	// ranked says that the pool is in the order of ByChain.
	ranked bool

	rough *search // looks for fillings by rough predictions; nil where there are none
	told  *search // the one of these two whose pool has the best filling that progress reports
}

// filling is a state of the space with its U, not divided by the temperature.
type filling struct {
	codes    []int32
	u        float64
	expanded bool
	density  float64 // U of the energy, temperature included; 0 under pll
	chain    float64 // see ByChain, where the pool is ranked
}

// Search looks for the fillings with the highest U. The first is the most probable word of
// every blank on its own. Then beams fill the blanks from the left and from the right, narrow
// ones first, and the best fillings are improved word by word with the model's predictions
// until the neighbours of all of the best o.Pool have been visited. Last, the blanks of the best
// filling are refilled two at a time, as long as that finds a better one.
//
// From two blanks on, on the CPU provider and under pll, all this is done with rough predictions
// ([mlm.Infill.Rounded]), which cost less. U of the best o.Pool that they find is then computed in
// full, and the best of these is improved word by word, before pairs of it are refilled and after.
//
// A search that ctx or the time limit cuts short returns the best of what it has, without
// an error once there is a filling with its U. Errors are those of the runtime and, before
// that, of ctx.
func (p *Problem) Search(ctx context.Context, o SearchOptions) (*Answer, error) {
	return p.newSearch(o).answer(ctx)
}

func (s *search) answer(ctx context.Context) (*Answer, error) {
	began, before := time.Now(), s.p.m.Sequences()
	limited := ctx
	if s.o.TimeLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, s.o.TimeLimit, errTimeLimit)
		defer cancel()
	}
	err := s.search(ctx, limited)
	if len(s.p.terms) > 0 {
		err = s.guide(ctx, limited, err)
	}
	if err == nil && s.o.Rank == ByChain && len(s.p.Blanks) > 1 {
		err = s.chainRule(limited)
	}
	a := &Answer{Sequences: s.p.m.Sequences() - before, Seconds: time.Since(began).Seconds()}
	switch {
	case err == nil:
	case len(s.pool) == 0 || limited.Err() == nil:
		return nil, err
	case ctx.Err() != nil:
		a.Stopped = "interrupted"
	default:
		a.Stopped = StoppedTime
	}
	a.Sentences = s.sentences()
	return a, nil
}

func (p *Problem) newSearch(o SearchOptions) *search {
	rounded, ok := p.Energy.Rounded()
	ok = ok && p.m.Form() == mlm.PLL && len(p.Blanks) >= roughBlanks
	o.defaults(len(p.Blanks), ok)
	if len(p.terms) > 0 {
		o.keep = max(o.keep, guidedPool)
	}
	if o.Rank = p.m.rank(o.Rank, p.words); o.Rank == ByChain && len(p.Blanks) > 1 { // of one blank both are the same
		o.keep = max(o.keep, chainPool)
	}
	s := p.searchBy(p.Energy, o)
	if ok {
		s.rough = p.searchBy(rounded, o)
		s.rough.told = s
	}
	return s
}

func (p *Problem) searchBy(e *mlm.Infill, o SearchOptions) *search {
	s := &search{p: p, o: o, t: newPredictions(e, max(keptWords, o.Top, o.Beam)), seen: map[string]bool{}}
	s.told = s
	return s
}

// search fills the pool. The first filling comes also where limited ends before it.
func (s *search) search(ctx, limited context.Context) error {
	if err := s.first(ctx, limited); err != nil {
		return err
	}
	return s.run(limited)
}

var errTimeLimit = errors.New("infill: time limit")

// first evaluates the most probable word of every blank on its own, so that there is an
// answer early.
func (s *search) first(ctx, limited context.Context) error {
	s.show("first fill", 0, 1)
	qs := s.p.open()
	if err := s.t.ask(ctx, qs); err != nil {
		return err
	}
	codes := s.p.Masked()
	for i, q := range qs {
		for _, c := range s.t.at(q).top {
			if s.p.admits(codes, i, c.word) {
				codes[i] = c.word
				break
			}
		}
	}
	if slices.Contains(codes, s.p.m.tok.Mask) {
		return nil // more constraints than words kept; a beam may do better
	}
	err := s.evaluate(limited, []trial{{codes: codes, order: indices(len(codes))}})
	if err != nil && limited.Err() != nil {
		// There is no time even for U of one filling.
		s.pool = []filling{{codes: codes, u: math.NaN()}}
	}
	return err
}

// open returns the queries of all blanks while all are masked.
func (p *Problem) open() (qs []query) {
	masked := p.Masked()
	for i := range masked {
		qs = append(qs, query{masked, i, -1})
	}
	return qs
}

// run looks for fillings by narrow beams and then by wide ones, so that a search that is cut short has
// a good one early: what narrow beams asked the model is cached for wide ones. Only the best
// filling of narrow beams is improved, the best o.Pool of wide ones.
func (s *search) run(ctx context.Context) error {
	look := cmp.Or(s.rough, s)
	then := func(err error) error { // the best so far are evaluated in case that the search is cut short
		if err != nil {
			return err
		}
		return s.take(ctx, s.o.Top)
	}
	if look != s && len(s.pool) > 0 {
		if err := look.evaluate(ctx, []trial{{codes: s.pool[0].codes, order: indices(len(s.p.Blanks))}}); err != nil {
			return err
		}
	}
	if narrow := look.o.Beam / 8; narrow > 1 {
		if err := look.beams(ctx, narrow); err != nil {
			return err
		}
		if err := then(look.climb(ctx, 1)); err != nil {
			return err
		}
	}
	if err := then(look.beams(ctx, look.o.Beam)); err != nil {
		return err
	}
	if len(look.pool) == 0 { // narrow beams may find one where wide ones do not
		return &InputError{Reason: "no filling meets the constraints"}
	}
	if err := then(look.climb(ctx, look.o.Pool)); err != nil {
		return err
	}
	if look != s && !s.o.NoPairs {
		if err := then(look.refill(ctx, look.pool[0].codes)); err != nil {
			return err
		}
	}
	for before := ""; ; {
		if err := s.take(ctx, s.o.keep); err != nil {
			return err
		}
		if err := s.climb(ctx, 1); err != nil {
			return err
		}
		best := s.pool[0].codes // that of rough predictions may be another
		if s.o.NoPairs || before == stateKey(best) {
			return nil
		}
		before = stateKey(best)
		if err := look.refill(ctx, best); err != nil {
			return err
		}
	}
}

// take evaluates the best n fillings that rough predictions found, if there are any.
func (s *search) take(ctx context.Context, n int) error {
	if s.rough == nil {
		return nil
	}
	var trials []trial
	for _, f := range s.rough.pool[:min(n, len(s.rough.pool))] {
		trials = append(trials, trial{codes: f.codes, order: indices(len(f.codes))})
	}
	return s.evaluate(ctx, trials)
}

// climb tries the most promising neighbours of the best filling whose neighbours were not
// tried, until there is none among the best of the pool, as many as improve says.
func (s *search) climb(ctx context.Context, improve int) error {
	for {
		s.pool = s.pool[:min(len(s.pool), s.o.keep)]
		best := s.pool[:min(len(s.pool), improve)]
		at := slices.IndexFunc(best, func(x filling) bool { return !x.expanded })
		if at < 0 {
			return nil
		}
		s.show("neighbours", at, len(best))
		trials, err := s.neighbours(ctx, s.pool[at].codes)
		if err != nil {
			return err
		}
		s.pool[at].expanded = true
		if err := s.evaluate(ctx, trials); err != nil {
			return err
		}
	}
}

// neighbours returns the o.Moves changes of one word that raise the log-probability of
// that word the most, or lower it the least.
func (s *search) neighbours(ctx context.Context, codes []int32) ([]trial, error) {
	var qs []query
	for i, w := range codes {
		qs = append(qs, query{codes, i, w})
	}
	if err := s.t.ask(ctx, qs); err != nil {
		return nil, err
	}
	type move struct {
		site int
		word int32
		gain float64
	}
	var moves []move
	terms := make([]float64, len(codes))
	for i, w := range codes {
		pr := s.t.at(qs[i])
		terms[i], _ = pr.logProb(w)
		for _, c := range pr.top {
			if c.word != w && s.p.admits(codes, i, c.word) {
				moves = append(moves, move{i, c.word, c.lp - terms[i]})
			}
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(b.gain, a.gain) })
	var out []trial
	for _, m := range moves {
		y := with(codes, m.site, m.word)
		if s.seen[stateKey(y)] {
			continue
		}
		// The nearest blanks change the most.
		out = append(out, trial{codes: y, order: nearest(len(y), m.site), expect: terms})
		if len(out) == s.o.Moves {
			break
		}
	}
	return out, nil
}

// trial is a filling whose U is being computed, one blank after the other.
type trial struct {
	codes  []int32
	order  []int     // blanks, in the order in which their terms are computed
	expect []float64 // expected terms, by blank; nil where nothing is known of them
	sum    float64   // of the terms computed, those of guides included
}

// evaluate computes U of fillings not tried before and adds them to the pool.
//
// Under pll U is a sum of log-probabilities, so the terms known so far bound it from above. A
// filling is given up once it cannot enter the pool with its other terms as expected, 0 where nothing is known of them.
func (s *search) evaluate(ctx context.Context, trials []trial) error {
	var left []*trial
	for k := range trials {
		key := stateKey(trials[k].codes)
		if !s.seen[key] {
			s.seen[key] = true
			left = append(left, &trials[k])
		}
	}
	if s.p.m.Form() != mlm.PLL {
		return s.densities(ctx, left)
	}
	floor := math.Inf(-1)
	if len(s.pool) >= s.o.keep && s.o.Rank != ByWord {
		floor = s.pool[s.o.keep-1].u
	}
	for round := range s.p.Blanks {
		qs := make([]query, len(left))
		for k, x := range left {
			i := x.order[round]
			qs[k] = query{x.codes, i, x.codes[i]}
		}
		if err := s.t.ask(ctx, qs); err != nil {
			return err
		}
		kept := left[:0]
		for k, x := range left {
			lp, _ := s.t.at(qs[k]).logProb(qs[k].word)
			x.sum += lp
			bound := x.sum
			if x.expect != nil {
				for _, j := range x.order[round+1:] {
					bound += x.expect[j]
				}
			}
			if bound > floor {
				kept = append(kept, x)
			}
		}
		left = kept
	}
	for _, x := range left {
		s.pool = append(s.pool, filling{codes: x.codes, u: x.sum})
	}
	s.sort()
	return nil
}

// densities is evaluate for energies that are not sums of log-probabilities.
func (s *search) densities(ctx context.Context, trials []*trial) error {
	x := energies.Batch{Space: s.p.Energy.Space()}
	for _, t := range trials {
		x.Codes = append(x.Codes, t.codes...)
	}
	u := make([]float64, len(trials))
	if len(u) == 0 {
		return nil
	}
	if err := s.p.Energy.LogDensity(ctx, u, x); err != nil {
		return err
	}
	for k, t := range trials {
		s.pool = append(s.pool, filling{codes: t.codes, u: t.sum + u[k]*s.p.m.mlm.Temperature(), density: u[k]})
	}
	s.sort()
	return nil
}

func (s *search) sort() {
	slices.SortStableFunc(s.pool, func(a, b filling) int { return cmp.Compare(s.rank(b), s.rank(a)) })
}

// rank is the number that fillings are ordered by.
func (s *search) rank(x filling) float64 {
	if s.o.Rank == ByWord {
		return x.u / float64(s.p.wordsFilled(x.codes))
	}
	return x.u
}

func (s *search) show(stage string, done, total int) {
	if s.o.Progress == nil {
		return
	}
	p := Progress{Stage: stage, Done: done, Total: total, U: math.NaN()}
	if pool := s.told.pool; len(pool) > 0 {
		p.Best, _ = s.p.Render(pool[0].codes)
		p.U = pool[0].u
	}
	s.o.Progress(p)
}

// sentences returns the best distinct texts of the pool.
func (s *search) sentences() []Sentence {
	var out []Sentence
	for _, x := range s.pool {
		n := s.p.Sentence(x.codes, x.u)
		if s.ranked {
			n.Chain = new(diag.Number(x.chain))
		}
		if !slices.ContainsFunc(out, func(k Sentence) bool { return k.Text == n.Text }) {
			out = append(out, n)
		}
		if len(out) == s.o.Top {
			break
		}
	}
	return out
}

func stateKey(codes []int32) string { return query{codes: codes, site: len(codes)}.key() }

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// nearest returns the indices below n, those nearest to i first.
func nearest(n, i int) []int {
	order := indices(n)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(a-i, i-a), max(b-i, i-b)) })
	return order
}
