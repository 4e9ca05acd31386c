package samplers

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:  "gwg",
		Doc:   "Gibbs with gradients: one site and value a step, chosen by the gradient, corrected",
		Paper: "Grathwohl, Swersky, Hashemi, Duvenaud, Maddison 2021 (arXiv:2102.04509), algorithm 1",
		Exact: true,
		Needs: energies.Gradient,
	}, NewGWG)
}

// GWGOptions are the options of GWG; the zero value has the defaults.
type GWGOptions struct {
	// Dense reads the gradient itself where the energy offers its softmax:
	// slower, and the oracle that the fast path is tested against.
	Dense bool `flag:"dense" default:"false" doc:"use the full gradient instead of the energy's own softmax (slower; for checks)"`
}

// GWG is Gibbs with gradients (Grathwohl et al. 2021): one change
//
//	q(i,v|x) ∝ exp(½β·d[i,v])   over all sites i and values v ≠ x_i
//
// accepted with probability min(1, exp(β(U(x') - U(x))) · q(i,x_i|x')/q(i,v|x)), β = 1
// but in annealed runs.
// It has no step size. U and gradient of the current state are kept, so a step
// costs one evaluation of both. Where no site has another value of positive
// weight the chain stays. Left out: several draws per gradient.
type GWG struct {
	gradient
	next   move
	site   []int     // that changes, -1 for none, [chain]
	logq   []float64 // log q(i,v|x), [chain]
	stream rng.Stream
}

var _ Kernel = (*GWG)(nil)

// NewGWG returns the kernel for e, which must be Differentiable; if it is
// Tilted, that is used. Errors are *energies.UnsupportedError or *energies.SpaceError.
func NewGWG(e energies.Energy, o GWGOptions) (*GWG, error) {
	g, err := newGradient("gwg", e, o.Dense)
	if err != nil {
		return nil, err
	}
	return &GWG{gradient: g}, nil
}

// Step implements Kernel.
func (k *GWG) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, d := s.Chains(), s.X.Space.Sites
	info.Reset(n)
	if err := k.anneal(ctx, s); err != nil {
		return err
	}
	k.propose(s)
	if err := k.evalFor(ctx, &k.next.Local, k.next.X, s); err != nil {
		return err
	}
	if err := k.next.refuse(s); err != nil {
		return err
	}
	for c, site := range k.site {
		if site < 0 {
			info.Accept[c], info.Accepted[c] = 1, true
			continue
		}
		logRatio := math.Inf(-1)
		if !isZero(k.next.U[c]) {
			old, now := s.X.Chain(c)[site], k.next.X.Chain(c)[site]
			back := k.next.logWeight(c*d+site, s.X.Space.Values, now, old) - logTotal(&k.next.Local, c, d)
			logRatio = s.gain(s.U[c], k.next.U[c]) + back - k.logq[c]
		}
		metropolis(&k.stream, s, info, c, logRatio)
	}
	info.Evaluations.Gradient = int64(n)
	s.commit(&k.next, info)
	return nil
}

// propose draws a site and its value for every chain.
func (k *GWG) propose(s *State) {
	n, sp := s.Chains(), s.X.Space
	k.next.like(s)
	copy(k.next.X.Codes, s.X.Codes)
	k.site, k.logq = resize(k.site, n), resize(k.logq, n)
	for c := range n {
		total := logTotal(&s.Local, c, sp.Sites)
		k.site[c] = -1
		if math.IsInf(total, -1) {
			continue
		}
		k.stream.Reset(s.Seed, s.ChainIDs[c], s.Step, useProposal)
		u := k.stream.Float64()
		for i, rest := range s.rest[c*sp.Sites : (c+1)*sp.Sites] {
			if w := math.Exp(rest - total); w > 0 {
				k.site[c] = i
				if u -= w; u < 0 {
					break
				}
			}
		}
		i := k.site[c]
		x := k.next.X.Chain(c)
		cur, r := x[i], c*sp.Sites+i
		x[i] = s.pick(sp, r, cur, k.stream.Float64())
		k.logq[c] = s.logWeight(r, sp.Values, cur, x[i]) - total
	}
}

// logTotal is log Σ_{i, v≠x_i} exp(½β·d[i,v]) of chain c.
func logTotal(l *Local, c, d int) float64 {
	rest := l.rest[c*d : (c+1)*d]
	top := math.Inf(-1)
	for _, t := range rest {
		top = max(top, t)
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, t := range rest {
		sum += math.Exp(t - top)
	}
	return math.Log(sum) + top
}
