package samplers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:        "block-gibbs",
		Doc:         "block Gibbs: several sites a step from their joint law given the others, by enumeration",
		Paper:       "Jensen, Kong, Kjærulff 1995",
		Constrained: true,
	}, newBlockGibbs)
}

// maxBlock bounds the states that one step enumerates for a chain.
const maxBlock = 1 << 16

type blockGibbsOptions struct {
	// Block is the number of sites drawn together; 0 means 2.
	Block int `flag:"block" default:"2" doc:"sites that are drawn together"`
	// Scan is "systematic" (the default: sites in turn) or "random".
	Scan string `flag:"scan" default:"systematic" choices:"systematic,random" doc:"order of the sites"`
}

// blockGibbs draws some sites of a chain, its block, from π given the others, without rejections. A step costs U of every
// state of the block but the current one.
type blockGibbs struct {
	Base
	block  int
	random bool

	next   Point
	sites  []int
	states energies.Batch // of the block
	u      []float64
	weight []float64
	stream rng.Stream
}

var _ Kernel = (*blockGibbs)(nil)

func newBlockGibbs(e energies.Energy, o blockGibbsOptions) (*blockGibbs, error) {
	if o.Scan != "" && o.Scan != systematicScan && o.Scan != randomScan {
		return nil, badOption("block-gibbs", "scan", o.Scan, "not one of systematic, random")
	}
	block, random := cmp.Or(o.Block, 2), o.Scan == randomScan
	sp := e.Space()
	if err := sp.Check(); err != nil {
		return nil, err
	}
	if block < 1 {
		return nil, badOption("block-gibbs", "block", block, "must be positive")
	}
	if len(sp.Constraints) > 0 { // as many sites as it takes to get from each state to every other
		least := 2
		if sp.LinearSites() != nil {
			least = energies.LinearMoves
		}
		if !random {
			return nil, badOption("block-gibbs", "scan", systematicScan, "blocks in turn do not connect the states that meet constraint "+sp.Constraints[0].Text+"; want random")
		}
		if block < min(least, sp.Sites) {
			return nil, badOption("block-gibbs", "block", block, fmt.Sprintf("constraint %s needs moves of %d sites", sp.Constraints[0].Text, least))
		}
	}
	k := &blockGibbs{Base: Base{Target: e}, block: min(block, sp.Sites), random: random}
	if math.Pow(float64(sp.Values), float64(k.block)) > maxBlock {
		return nil, badOption("block-gibbs", "block", block, fmt.Sprintf("a step would enumerate more than %d states for a chain; choose fewer sites", maxBlock))
	}
	return k, nil
}

func (k *blockGibbs) Step(ctx context.Context, s *State, info *Info) error {
	info.Reset(s.Chains())
	k.next.like(s.X)
	k.next.U = resize(k.next.U, s.Chains())
	for c := range s.Chains() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := k.draw(ctx, s, c, info); err != nil {
			return err
		}
		info.Accept[c], info.Accepted[c] = 1, true
	}
	s.Commit(&k.next, info)
	return nil
}

// draw makes the step of chain c.
func (k *blockGibbs) draw(ctx context.Context, s *State, c int, info *Info) error {
	x := s.X.Chain(c)
	k.choose(s, c)
	s.Stream(&k.stream, c, UseProposal)
	k.states = energies.Batch{Space: s.X.Space, Codes: k.states.Codes[:0], IDs: k.states.IDs[:0]}
	k.enumerate(slices.Clone(x), 0)
	n := k.states.Chains()
	for range n {
		k.states.IDs = append(k.states.IDs, s.ChainIDs[c])
	}
	k.u, k.weight = resize(k.u, n), resize(k.weight, n)
	if err := k.candidates(ctx, s, k.u, k.states, &info.Evaluations); err != nil {
		return err
	}
	exponentiate(k.weight, k.u, s.InverseTemperature(c)) // the current state has probability
	j := k.stream.Categorical(k.weight)
	copy(k.next.X.Chain(c), k.states.Chain(j))
	k.next.U[c] = k.u[j]
	return nil
}

// choose sets the sites of chain c's block: k.block of them, in turn or uniform.
func (k *blockGibbs) choose(s *State, c int) {
	d := s.X.Space.Sites
	k.sites = k.sites[:0]
	if !k.random {
		for j := range k.block {
			k.sites = append(k.sites, int((s.Step*int64(k.block)+int64(j))%int64(d)))
		}
		return
	}
	s.Stream(&k.stream, c, UseSite)
	for len(k.sites) < k.block {
		if i := k.stream.IntN(d); !slices.Contains(k.sites, i) {
			k.sites = append(k.sites, i)
		}
	}
}

// enumerate appends the states that meet the constraints and differ from x at the block's sites from the j-th on, x first
// among those that agree with it so far. x is restored.
func (k *blockGibbs) enumerate(x []int32, j int) {
	if j == len(k.sites) {
		if k.states.Space.Meets(x) {
			k.states.Codes = append(k.states.Codes, x...)
		}
		return
	}
	k.enumerate(x, j+1)
	i := k.sites[j]
	cur := x[i]
	for v := range k.states.Space.Codes(i) {
		if v != cur {
			x[i] = v
			k.enumerate(x, j+1)
		}
	}
	x[i] = cur
}
