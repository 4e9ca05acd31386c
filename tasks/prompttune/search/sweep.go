package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

const (
	// tolerance is the difference of U that counts: cosines in float32 differ by less between
	// processors, and an answer must not.
	tolerance = 1e-6
	// wideRound bounds the evaluations of one round over all sites with wide lists of all values.
	wideRound = 20_000
	// sample is the number of values that a step of a rough climb evaluates, near how far below the
	// best state, as a share of its U, one may end that a short climb follows.
	sample = 40
	near   = 0.02
)

// Sweeps climbs to states that no change of one site and no move of one value to another site
// improves, from a new state each time, and keeps the best.
//
// A step of a chain is a sweep of one site: it evaluates every value of a list there and moves
// to the best if U grows. After the last site it takes one value out and puts it in elsewhere, all
// ways, or swaps two. The chain has climbed when a round of such steps changes nothing.
//
// Lists are wide, short or rough. A wide one has all values, or, where a round would take more than 20,000
// evaluations, the TopK of largest gradient. A short one has the Words values that stood in the best states
// evaluated so far, a rough one 40 of these, drawn at each step. The first climb uses wide lists. Each later one
// starts from the best state with two, three or all sites redrawn, in turn, and uses rough lists. Where it ends
// within 2% of the best U it goes on with short lists, and above the best U with wide ones. So the
// best state of a complete climb is a local maximum over wide lists.
//
// Differences of U below 1e-6 are ties, which the lowest code wins. β is immaterial.
type Sweeps struct {
	samplers.Base
	words int  // in a short list
	all   bool // wide lists have all values
	grad  *GCG // lists of the largest gradient otherwise
}

// Variables of Sweeps, beside the best state.
const (
	wordsVar = "words" // the largest U of a state with each value, [value]
	stageVar = "stage" // one of the constants below
	placeVar = "place" // the site of the next step; the number of sites stands for moves
	idleVar  = "idle"  // steps of the climb since it last moved
	countVar = "climb" // number of climbs ended
	wideVar  = "wide"  // U where the last climb with wide lists ended
)

// Stages of a chain.
const (
	wideStage = iota
	shortStage
	roughStage
	startStage // the next step starts a climb
)

var _ samplers.Kernel = (*Sweeps)(nil)

// NewSweeps returns the kernel for e. Errors are *samplers.OptionError,
// *energies.UnsupportedError or *energies.SpaceError.
func NewSweeps(e energies.Energy, o Options) (*Sweeps, error) {
	if o.Words < 0 || o.Words == 1 {
		return nil, &samplers.OptionError{Sampler: "search", Option: "words", Value: fmt.Sprint(o.Words), Reason: "must be 2 or more"}
	}
	grad, err := NewGCG(e, GCGOptions{TopK: o.TopK})
	if err != nil {
		return nil, err
	}
	space := e.Space()
	k := &Sweeps{words: cmp.Or(o.Words, 150), grad: grad, all: space.Sites*space.Values <= wideRound}
	k.Base = samplers.Base{Target: e, Specs: append(bestSpecs(space.Sites),
		samplers.VarSpec{Name: wordsVar, Shape: []int{space.Values}, Start: -math.MaxFloat64},
		samplers.VarSpec{Name: stageVar}, samplers.VarSpec{Name: placeVar}, samplers.VarSpec{Name: idleVar}, samplers.VarSpec{Name: countVar},
		samplers.VarSpec{Name: wideVar, Start: -math.MaxFloat64},
	)}
	return k, nil
}

// Init implements samplers.Kernel.
func (k *Sweeps) Init(ctx context.Context, s *samplers.State) error {
	s.Declare(k.Specs)
	s.Point = samplers.Point{X: s.X, U: make([]float64, s.Chains())}
	if err := k.Target.LogDensity(ctx, s.U, s.X); err != nil {
		return err
	}
	s.Evaluations.Density += int64(s.Chains())
	if err := s.CheckInit(); err != nil {
		return err
	}
	remember(s)
	k.grad.codes = nil
	// Those of chains that did not move are not counted when a run goes on, see GCG.Init.
	idle := s.Var(idleVar)
	return k.grad.refresh(ctx, s, &samplers.Info{}, func(c int) bool { return k.asksGradient(s, c) && idle[c] > 0 })
}

// asksGradient reports whether the next step of a chain takes the gradient.
func (k *Sweeps) asksGradient(s *samplers.State, c int) bool {
	return !k.all && s.Var(stageVar)[c] == wideStage && int(s.Var(placeVar)[c]) < s.X.Space.Sites
}

// Step implements samplers.Kernel.
func (k *Sweeps) Step(ctx context.Context, s *samplers.State, info *samplers.Info) error {
	n, d := s.Chains(), s.X.Space.Sites
	info.Reset(n)
	if err := k.grad.refresh(ctx, s, info, func(c int) bool { return k.asksGradient(s, c) }); err != nil {
		return err
	}
	x := energies.Batch{Space: s.X.Space}
	first := make([]int, n+1) // of the states of each chain
	for c := range n {
		x.Codes = k.neighbours(x.Codes, s, c)
		first[c+1] = len(x.Codes) / d
		x.IDs = append(x.IDs, slices.Repeat(s.ChainIDs[c:c+1], first[c+1]-first[c])...)
	}
	u := make([]float64, first[n])
	if err := k.evaluate(ctx, s, u, x); err != nil {
		return err
	}
	info.Evaluations.Density = int64(len(u))
	for c := range n {
		k.advance(s, info, c, u[first[c]:first[c+1]], x.Codes[first[c]*d:first[c+1]*d])
	}
	remember(s)
	for c := range n {
		k.turn(s, c)
	}
	s.Step++
	s.Evaluations.Density += info.Evaluations.Density
	s.Evaluations.Gradient += info.Evaluations.Gradient
	return nil
}

// evaluate writes U of candidates; one that is NaN or +Inf is an error, or is rejected.
func (k *Sweeps) evaluate(ctx context.Context, s *samplers.State, u []float64, x energies.Batch) error {
	if len(u) == 0 {
		return nil
	}
	if err := k.Target.LogDensity(ctx, u, x); err != nil {
		return err
	}
	for j := range u {
		if err := checkGradient(s, slices.Index(s.ChainIDs, x.IDs[j]), x.Chain(j), u[j], nil); err != nil {
			if !s.RejectNonFinite {
				return err
			}
			u[j] = math.Inf(-1)
		}
	}
	return nil
}

// neighbours appends the states that the next step of a chain compares.
func (k *Sweeps) neighbours(to []int32, s *samplers.State, c int) []int32 {
	own, place, stage := s.X.Chain(c), int(s.Var(placeVar)[c]), s.Var(stageVar)[c]
	switch {
	case stage == startStage:
		return k.start(to, s, c)
	case place == len(own):
		return moves(to, own)
	}
	var list []int32
	switch {
	case stage == shortStage:
		list = slices.Sorted(slices.Values(k.short(s, c, place)))
	case stage == roughStage:
		list = k.rough(s, c, place)
	case k.all:
		list = allowedAt(s.X.Space, place)
	default:
		list = k.grad.top[c*len(own)+place]
	}
	for _, v := range list {
		if v != own[place] {
			to = append(to, own...)
			to[len(to)-len(own)+place] = v
		}
	}
	return to
}

// allowedAt returns the values of a site.
func allowedAt(space *energies.Space, site int) []int32 {
	if list := space.AllowedAt(site); list != nil {
		return list
	}
	list := make([]int32, space.Values)
	for v := range list {
		list[v] = int32(v)
	}
	return list
}

// short returns the short list of a site, the best value first.
func (k *Sweeps) short(s *samplers.State, c, site int) []int32 {
	values := s.X.Space.Values
	score := s.Var(wordsVar)[c*values : (c+1)*values]
	list := slices.Clone(allowedAt(s.X.Space, site))
	slices.SortFunc(list, func(v, w int32) int {
		return cmp.Or(cmp.Compare(math.Round(score[w]/tolerance), math.Round(score[v]/tolerance)), cmp.Compare(v, w))
	})
	return list[:min(k.words, len(list))]
}

// rough returns a random part of the short list of a site.
func (k *Sweeps) rough(s *samplers.State, c, site int) []int32 {
	list := k.short(s, c, site)
	var r rng.Stream
	s.Stream(&r, c, samplers.UseProposal)
	n := min(sample, len(list))
	for i := range n {
		at := i + r.IntN(len(list)-i)
		list[i], list[at] = list[at], list[i]
	}
	slices.Sort(list[:n])
	return list[:n]
}

// start appends the state that a climb starts from.
func (k *Sweeps) start(to []int32, s *samplers.State, c int) []int32 {
	d := s.X.Space.Sites
	var r rng.Stream
	s.Stream(&r, c, samplers.UseSite)
	kept := max(0, d-[]int{2, 3, d}[int(s.Var(countVar)[c])%3]) // sites of the best state that stay
	order := make([]int, d)
	for i := range order {
		at := r.IntN(i + 1)
		order[i], order[at] = order[at], i
	}
	from := len(to)
	for _, v := range s.Var(bestVar)[c*d : (c+1)*d] {
		to = append(to, int32(v))
	}
	for _, site := range order[kept:] {
		list := k.short(s, c, site)
		to[from+site] = list[r.IntN(len(list))]
	}
	return to
}

// moves appends the states in which one value has moved to another site, those between giving way, or two
// values are swapped.
func moves(to, own []int32) []int32 {
	add := func(x []int32) {
		if !slices.Equal(x, own) {
			to = append(to, x...)
		}
	}
	for i := range own {
		rest := slices.Concat(own[:i], own[i+1:])
		for j := range own {
			add(slices.Insert(slices.Clone(rest), j, own[i]))
			if j > i+1 { // a swap of neighbours is a move
				x := slices.Clone(own)
				x[i], x[j] = x[j], x[i]
				add(x)
			}
		}
	}
	return to
}

// advance learns from the candidates x of a chain, with U u, and moves to the best.
func (k *Sweeps) advance(s *samplers.State, info *samplers.Info, c int, u []float64, x []int32) {
	own := s.X.Chain(c)
	d, values := len(own), s.X.Space.Values
	score := s.Var(wordsVar)[c*values : (c+1)*values]
	best := -1
	for j, value := range u {
		for _, v := range x[j*d : (j+1)*d] {
			score[v] = max(score[v], value)
		}
		if best < 0 || value > u[best]+tolerance {
			best = j
		}
	}
	if best < 0 || s.Var(stageVar)[c] != startStage && !(u[best] > s.U[c]+tolerance) || math.IsInf(u[best], -1) {
		return
	}
	info.Accept[c], info.Accepted[c] = 1, true
	to := x[best*d : (best+1)*d]
	for i, v := range to {
		if own[i] != v {
			info.Hops[c]++
		}
	}
	copy(own, to)
	s.U[c] = u[best]
	s.Var(idleVar)[c] = -1
}

// turn chooses what the next step of a chain does.
func (k *Sweeps) turn(s *samplers.State, c int) {
	sites := s.X.Space.Sites
	stage, place, idle, wide := &s.Var(stageVar)[c], &s.Var(placeVar)[c], &s.Var(idleVar)[c], &s.Var(wideVar)[c]
	if *stage == startStage {
		*stage, *place, *idle = roughStage, 0, 0
		return
	}
	*place = float64((int(*place) + 1) % (sites + 1))
	if *idle++; int(*idle) <= sites {
		return
	}
	*idle = 0
	best := s.Var(scoreVar)[c]
	switch {
	case *stage == roughStage && s.U[c] > best-near*math.Abs(best):
		*stage = shortStage
		return
	case *stage == shortStage && s.U[c] >= best-tolerance && s.U[c] > *wide+tolerance: // a new best state
		*stage = wideStage
		return
	case *stage == wideStage:
		*wide = s.U[c]
	}
	*stage = startStage
	s.Var(countVar)[c]++
}
