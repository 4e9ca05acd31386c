package samplers

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:  "mwg",
		Doc:   "Metropolis within Gibbs: a block of sites a step, proposed from the model's own prediction",
		Paper: "Tierney 1994, section 2.3 (independence proposals); the proposal of Wang, Cho 2019 (arXiv:1902.04094)",
		Needs: energies.ModelConditional,

		Reversible: true, // a sequence of steps in the order that TwoStage chooses
	}, NewMetropolisWithinGibbs)
}

// MetropolisWithinGibbsOptions are the options; the zero value has the defaults.
type MetropolisWithinGibbsOptions struct {
	// Scan is SystematicScan (the default) or RandomScan.
	Scan string `flag:"scan" default:"systematic" choices:"systematic,random" doc:"order of the sites"`
	// Block is the number of sites that a step redraws together, all of them if there are fewer; 0
	// means 2 if there are two sites, and 1 elsewhere: with more sites, blocks of two lose to single
	// sites at the same cost. The scan chooses the first, the others are uniform.
	Block int `flag:"block" default:"2 with two sites, else 1" doc:"sites that are redrawn together"`
}

// MetropolisWithinGibbs redraws b sites B = i_1, ..., i_b a step. It proposes values one
// after the other from the model's predictions f to the power β,
//
//	q_B(x'|x) = Π_j f(x'_{i_j} | x'_{i_1}, ..., x'_{i_j-1}, x_-B)^β / Z_j,
//
// each with the sites of B that are not drawn yet hidden from the model, and accepts with probability
//
//	min(1, exp(β(U(x') - U(x))) · q_B(x|x') / q_B(x'|x)).
//
// Unlike the pseudo-Gibbs sampler that always accepts, it leaves exp(βU) invariant. Where
// the model's predictions are nearly conditionals of exp(U), single sites are rejected little; blocks
// pass between modes that differ at several sites. A step costs 2b-1 predictions and one evaluation at
// the proposal.
type MetropolisWithinGibbs struct {
	Base
	gibbs Gibbs
	block int

	sites   []int          // the block of each chain, [chain, j]
	forward []float64      // log-probability of the value drawn last, [chain]
	logQ    []float64      // log q(x|x') - log q(x'|x), [chain]
	back    energies.Batch // x with the sites hidden that the reverse move has not drawn yet
}

var _ Kernel = (*MetropolisWithinGibbs)(nil)

// NewMetropolisWithinGibbs returns the kernel for e. Errors are those of NewGibbsModel.
func NewMetropolisWithinGibbs(e energies.Energy, o MetropolisWithinGibbsOptions) (*MetropolisWithinGibbs, error) {
	k, err := newGibbs("mwg", e, GibbsOptions{Scan: o.Scan})
	if err != nil {
		return nil, err
	}
	if k.ask = energies.ModelConditional; !k.Oracle.Capabilities().Answers.Has(k.ask) {
		return nil, &energies.UnsupportedError{Who: "samplers: mwg", Want: k.ask}
	}
	if o.Block < 0 {
		return nil, &OptionError{"mwg", "block", strconv.Itoa(o.Block), "must be positive"}
	}
	sites := e.Space().Sites
	if o.Block == 0 {
		o.Block = 1
		if sites == 2 {
			o.Block = 2
		}
	}
	return &MetropolisWithinGibbs{Base: k.Base, gibbs: *k, block: min(o.Block, sites)}, nil
}

// Step implements Kernel.
func (k *MetropolisWithinGibbs) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, n := &k.gibbs, s.Chains()
	info.Reset(n)
	g.next.like(s.X)
	g.next.U = resize(g.next.U, n)
	copy(g.next.X.Codes, s.X.Codes)
	copy(g.next.U, s.U)
	if err := k.propose(ctx, s, info); err != nil {
		return err
	}
	if err := g.evaluateMoved(ctx, s, info); err != nil {
		return err
	}
	for c := range n {
		s.Metropolis(&g.stream, info, c, s.DeltaU(c, g.next.U[c])+k.logQ[c])
	}
	s.Commit(&g.next, info)
	return nil
}

// propose redraws the block of every chain and fills k.logQ.
func (k *MetropolisWithinGibbs) propose(ctx context.Context, s *State, info *Info) error {
	g, n, values := &k.gibbs, s.Chains(), s.X.Space.Values
	k.choose(s)
	g.lp = resize(g.lp, n*values)
	g.weight = resize(g.weight, values)
	k.forward, k.logQ = resize(k.forward, n), resize(k.logQ, n)
	clear(k.logQ)
	for j := range k.block {
		for c := range n {
			g.site[c] = k.sites[c*k.block+j]
		}
		if err := g.given(ctx, s, g.next.X, &info.Evaluations); err != nil {
			return err
		}
		if err := k.draw(s, j); err != nil {
			return err
		}
		if j > 0 { // the first prediction is the same for both directions
			if err := g.given(ctx, s, k.back, &info.Evaluations); err != nil {
				return err
			}
		}
		for c, site := range g.site {
			old := s.X.Chain(c)[site]
			k.back.Chain(c)[site] = old
			k.logQ[c] += logShare(g.lp[c*values:(c+1)*values], s.InverseTemperature(c), old) - k.forward[c]
		}
	}
	return nil
}

// choose fills k.sites, and hides all of each block but its first site in g.next.X and k.back.
func (k *MetropolisWithinGibbs) choose(s *State) {
	g, d := &k.gibbs, s.X.Space.Sites
	g.scan(s, s.Step)
	k.sites = k.sites[:0]
	for c, first := range g.site {
		block := append(k.sites[len(k.sites):], first)
		if k.block > 1 {
			s.Stream(&g.stream, c, UseBlock) // not UseSite, which a scan in TwoStage has used
		}
		for len(block) < k.block {
			if i := g.stream.IntN(d); !slices.Contains(block, i) {
				block = append(block, i)
				g.next.X.Chain(c)[i] = -1
			}
		}
		k.sites = append(k.sites, block...)
	}
	k.back = energies.Batch{Space: s.X.Space, Codes: append(k.back.Codes[:0], g.next.X.Codes...)}
}

// draw draws the j-th site of every block from g.lp, and sets k.forward to the logarithm of its probability.
func (k *MetropolisWithinGibbs) draw(s *State, j int) error {
	g, values := &k.gibbs, s.X.Space.Values
	for c, site := range g.site {
		lp, beta := g.lp[c*values:(c+1)*values], s.InverseTemperature(c)
		k.forward[c] = math.Inf(1) // rejects
		if !exponentiate(g.weight, lp, beta) {
			if !s.RejectNonFinite {
				return &NonFiniteError{s.ChainIDs[c], s.Step, "conditional", math.NaN(), slices.Clone(s.X.Chain(c))}
			}
			g.next.X.Chain(c)[site] = s.X.Chain(c)[site]
			continue
		}
		g.stream.Reset(s.Seed, s.ChainIDs[c], s.Step*int64(k.block)+int64(j), UseProposal)
		v := int32(g.stream.Categorical(g.weight))
		g.next.X.Chain(c)[site] = v
		k.forward[c] = logShare(lp, beta, v)
	}
	return nil
}

// logShare is the logarithm of the probability of value v under exp(β·lp).
func logShare(lp []float64, beta float64, v int32) float64 {
	top, sum := slices.Max(lp), 0.0
	for _, t := range lp {
		sum += math.Exp(beta * (t - top))
	}
	return beta*(lp[v]-top) - math.Log(sum)
}
