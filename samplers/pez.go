package samplers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

func init() {
	Register(Registration{
		Name:  "pez",
		Doc:   "hard prompts made easy: AdamW on embeddings, states their nearest values; an optimiser, not a sampler",
		Paper: "Wen et al. 2023 (arXiv:2302.03668), algorithm 1",
	}, NewPEZ)
}

// Embedded is an energy whose model reads each value as a row of an embedding table.
type Embedded interface {
	energies.Energy
	// Width returns the length of an embedding row.
	Width() int
	// Embed writes the rows of codes, [chain, site], to e ([chain, site, width]).
	Embed(e []float32, x energies.Batch)
	// EmbeddingGrad writes U to u ([chain]) and the gradient of U with respect to the
	// embeddings of x to g ([chain, site, width]). Same rules as LogDensity.
	EmbeddingGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error
	// Nearest writes to codes ([chain, site]) the allowed value of each site whose row has
	// the largest cosine with e ([chain, site, width]); the lowest code among equals.
	Nearest(ctx context.Context, codes []int32, e []float32) error
}

// PEZOptions are the options of PEZ; the zero value has the defaults.
type PEZOptions struct {
	// LearningRate is that of AdamW; 0 means 0.1.
	LearningRate float64 `flag:"lr" default:"0.1" doc:"learning rate"`
	// WeightDecay is that of AdamW; 0 means 0.1, and a negative number none.
	WeightDecay float64 `flag:"weight-decay" zero:"-1" default:"0.1" doc:"weight decay, apart from the gradient"`
}

// The other settings of AdamW, as torch.optim.AdamW has them by default.
const (
	adamBeta1 = 0.9
	adamBeta2 = 0.999
	adamEps   = 1e-8
)

// PEZ optimises prompts in the embedding space (Wen et al. 2023, algorithm 1), the
// baseline of prompt tuning. Each chain has an embedding P of every site, at first the
// rows of its initial codes; its state is their projection, the allowed values whose rows
// have the largest cosine with P. A step takes the gradient of -β·U at the state's own
// rows and applies it to P by AdamW (Loshchilov and Hutter 2019):
//
//	P ← P·(1 - lr·decay)
//	m ← 0.9·m + 0.1·g,  v ← 0.999·v + 0.001·g²
//	P ← P - lr·m̂/(√v̂ + 10⁻⁸),  m̂ = m/(1-0.9ᵗ),  v̂ = v/(1-0.999ᵗ)
//
// Nothing is random but where a chain starts, and no law is left invariant; β is all but
// immaterial, since AdamW divides it out unless it changes. U need not rise from step to
// step: keeping the best state is the observer's part, as is stopping. A step costs one
// evaluation where the state changed and none where it did not, since P alone moved. A
// state of probability zero, or one that is rejected, is not entered while P goes on. P, m
// or v beyond float32, as of a huge learning rate, is a *NonFiniteError.
//
// P, m and v are in State.Aux in this order, [chain, 3, site, width], float32; State.Since
// is the step with which t began.
type PEZ struct {
	energy    Embedded
	lr, decay float64

	aux   []float32 // of the step being made
	part  []float32 // P, [chain, site, width]
	codes []int32   // their projection
	est   estimate  // of the chains that moved
}

var (
	_ Annealer = (*PEZ)(nil)
	_ Keeper   = (*PEZ)(nil)
)

// NewPEZ returns the kernel for e, which must be Embedded. Errors are *energies.UnsupportedError,
// *OptionError or *energies.SpaceError.
func NewPEZ(e energies.Energy, o PEZOptions) (*PEZ, error) {
	emb, ok := e.(Embedded)
	if !ok {
		return nil, &OptionError{"pez", "energy", "given", "must have embeddings of its values"}
	}
	k := &PEZ{energy: emb, lr: o.LearningRate, decay: o.WeightDecay}
	switch {
	case !(o.LearningRate >= 0) || math.IsInf(o.LearningRate, 1):
		return nil, &OptionError{"pez", "lr", fmt.Sprint(o.LearningRate), "must be positive and finite"}
	case o.WeightDecay-o.WeightDecay != 0:
		return nil, &OptionError{"pez", "weight-decay", fmt.Sprint(o.WeightDecay), "must be finite"}
	}
	if k.lr == 0 {
		k.lr = 0.1
	}
	if k.decay == 0 {
		k.decay = 0.1
	}
	k.decay = max(k.decay, 0)
	return k, e.Space().Check()
}

// Energy implements Kernel.
func (k *PEZ) Energy() energies.Energy { return k.energy }

// Anneals implements Annealer.
func (k *PEZ) Anneals() bool { return true }

// Keeps implements Keeper.
func (k *PEZ) Keeps() (since bool, aux int) { return true, 3 * k.row() }

// row is the length of a chain's embeddings.
func (k *PEZ) row() int { return k.energy.Space().Sites * k.energy.Width() }

// Init implements Kernel. Without P, m and v in s it starts from the rows of s.X.
func (k *PEZ) Init(ctx context.Context, s *State) error {
	n, row := s.Chains(), k.row()
	if len(s.Since) != n || len(s.Aux) != 3*n*row {
		s.Since, s.Aux, k.part = resize(s.Since, n), make([]float32, 3*n*row), resize(k.part, n*row)
		k.energy.Embed(k.part, s.X)
		for c := range n {
			s.Since[c] = s.Step
			copy(s.Aux[3*c*row:], k.part[c*row:(c+1)*row])
		}
	}
	s.Local = Local{U: resize(s.U, n), embed: resize(s.embed, n*row)}
	if err := k.energy.EmbeddingGrad(ctx, s.U, s.embed, s.X); err != nil {
		return err
	}
	if err := checkInit(s); err != nil {
		return err
	}
	for c := range n {
		if err := s.checkEmbed(c, row, s.X, s.ChainIDs[c], s.Step); err != nil {
			return err
		}
	}
	s.Evaluations.Gradient += int64(n)
	return nil
}

// checkEmbed is Local.check for a gradient of embeddings.
func (l *Local) checkEmbed(c, row int, x energies.Batch, id, step int64) error {
	if err := l.check(c, &x, id, step); err != nil || isZero(l.U[c]) {
		return err
	}
	for _, g := range l.embed[c*row : (c+1)*row] {
		if g-g != 0 {
			return &NonFiniteError{Chain: id, Step: step, What: "gradient", Value: l.U[c], State: cloneCodes(x, c)}
		}
	}
	return nil
}

// Step implements Kernel.
func (k *PEZ) Step(ctx context.Context, s *State, info *Info) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, d, row := s.Chains(), s.X.Space.Sites, k.row()
	info.Reset(n)
	k.aux, k.part = resize(k.aux, len(s.Aux)), resize(k.part, n*row)
	copy(k.aux, s.Aux)
	for c := range n {
		own := k.aux[3*c*row : 3*(c+1)*row]
		if !k.descend(own, s.embed[c*row:(c+1)*row], s.InverseTemperature(), s.Step-s.Since[c]+1) {
			return &NonFiniteError{Chain: s.ChainIDs[c], Step: s.Step, What: "embedding", Value: s.U[c], State: cloneCodes(s.X, c)}
		}
		copy(k.part[c*row:], own[:row])
	}
	k.codes = resize(k.codes, n*d)
	if err := k.energy.Nearest(ctx, k.codes, k.part); err != nil {
		return err
	}
	if err := k.evaluate(ctx, s, info); err != nil {
		return err
	}
	for j, c := range k.est.chains {
		if !info.Accepted[c] {
			continue
		}
		old, now := s.X.Chain(c), k.est.x.Chain(j)
		for i := range old {
			if old[i] != now[i] {
				info.Hops[c]++
			}
		}
		copy(old, now)
		s.U[c] = k.est.U[j]
		copy(s.embed[c*row:(c+1)*row], k.est.embed[j*row:(j+1)*row])
	}
	s.Aux, k.aux = k.aux, s.Aux
	s.Step++
	s.Evaluations.add(info.Evaluations)
	return nil
}

// descend makes step t of AdamW on P, m and v in own, g the gradient of U. It reports
// whether all are still numbers.
func (k *PEZ) descend(own, g []float32, beta float64, t int64) bool {
	p, m, v := own[:len(g)], own[len(g):2*len(g)], own[2*len(g):]
	bias1, bias2 := 1-math.Pow(adamBeta1, float64(t)), 1-math.Pow(adamBeta2, float64(t))
	for j, up := range g {
		down := -beta * float64(up)
		mj := adamBeta1*float64(m[j]) + (1-adamBeta1)*down
		vj := adamBeta2*float64(v[j]) + (1-adamBeta2)*down*down
		m[j], v[j] = float32(mj), float32(vj)
		p[j] = float32(float64(p[j])*(1-k.lr*k.decay) - k.lr*(mj/bias1)/(math.Sqrt(vj/bias2)+adamEps))
	}
	for _, x := range own {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// evaluate fills k.est for the chains whose projection is another state.
func (k *PEZ) evaluate(ctx context.Context, s *State, info *Info) error {
	e, d, row := &k.est, s.X.Space.Sites, k.row()
	e.chains = e.chains[:0]
	for c := range info.Accept {
		info.Accept[c], info.Accepted[c] = 1, true
		if !slices.Equal(s.X.Chain(c), k.codes[c*d:(c+1)*d]) {
			e.chains = append(e.chains, c)
		}
	}
	if len(e.chains) == 0 {
		return nil
	}
	e.take(energies.Batch{Space: s.X.Space, Codes: k.codes}, s.ChainIDs)
	e.U, e.embed = resize(e.U, len(e.chains)), resize(e.embed, len(e.chains)*row)
	if err := k.energy.EmbeddingGrad(ctx, e.U, e.embed, e.x); err != nil {
		return err
	}
	info.Evaluations.Gradient += int64(len(e.chains))
	for j, c := range e.chains {
		err := e.checkEmbed(j, row, e.x, s.ChainIDs[c], s.Step)
		if err != nil && !s.RejectNonFinite {
			return err
		}
		if err != nil || isZero(e.U[j]) {
			info.Accept[c], info.Accepted[c] = 0, false
		}
	}
	return nil
}
