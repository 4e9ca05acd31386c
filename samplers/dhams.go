package samplers

import (
	"context"
	"math"
	"strconv"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

func init() {
	Register(Registration{
		Name:  "avg",
		Doc:   "auxiliary variable gradient: all sites move given a Gaussian copy of the state",
		Paper: "Rhodes, Gutmann 2022 (arXiv:2208.00040); Titsias, Papaspiliopoulos 2018",
		Tunes: "step-size",
		Needs: energies.Gradient,
	}, NewAVG)
	Register(Registration{
		Name:  "dhams",
		Doc:   "discrete Hamiltonian-assisted Metropolis: a momentum persists from step to step; irreversible",
		Paper: "Zhou, Tan 2025 (arXiv:2507.09807), without over-relaxation and gradient correction",
		Tunes: "step-size",
		Needs: energies.Gradient,
	}, NewDHAMS)
}

// MomentumVar is the momentum of DHAMS, [site], or [site, value] in categorical spaces.
const MomentumVar = "momentum"

// AVGOptions are the options of AVG; the zero value has the defaults.
type AVGOptions struct {
	// StepSize is the standard deviation δ of the auxiliary variable; 0 adapts it in warm-up
	// to an acceptance of TargetAcceptance, from half the distance of neighbouring values.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"standard deviation of the auxiliary variable"`
}

// DHAMSOptions are the options of DHAMS; the zero value has the defaults.
type DHAMSOptions struct {
	// StepSize is that of AVGOptions.
	StepSize float64 `flag:"step-size" default:"adapted in warm-up" doc:"standard deviation of the auxiliary variable"`
	// Persistence is the share ε of the momentum that each step keeps, below 1; 0 means 0.9.
	Persistence float64 `flag:"persistence" default:"0.9" doc:"share of the momentum that a step keeps, above 0 and below 1"`
}

// DHAMS samples the state together with a Gaussian momentum u, π(x)·N(u; 0, I) (Zhou and Tan
// 2025). With s(x) the numbers, or one-hot codes, that x stands for, a step is
//
//	u  ← ε·u + √(1-ε²)·noise
//	z  = s(x) + δ·u
//	x' ~ Π_i exp(β·d[i,x'_i] - |z_i - s(x'_i)|²/(2δ²)) / normaliser
//	u' = (s(x') - z)/δ
//
// accepted with probability min(1, π(x')N(u')Q(x|z,x') / (π(x)N(u)Q(x'|z,x))), else (x, -u).
// It satisfies skew detailed balance, the reverse of a move being made with opposite momenta.
// Where U is linear nothing is rejected. Without a momentum (ε = 0) it is AVG, which is
// reversible.
type DHAMS struct {
	*Metropolis
	keep float64 // ε
	half []float64
	z    []float64
}

var _ Kernel = (*DHAMS)(nil)

// NewAVG returns the auxiliary variable gradient sampler for e, which must have a gradient.
// Left out: preconditioning by the matrix of a log-quadratic energy. Errors are
// *energies.UnsupportedError, *OptionError or *energies.SpaceError.
func NewAVG(e energies.Energy, o AVGOptions) (*DHAMS, error) {
	return newDHAMS("avg", e, o.StepSize, 0)
}

// NewDHAMS returns the kernel for e, which must have a gradient. Errors are those of NewAVG.
func NewDHAMS(e energies.Energy, o DHAMSOptions) (*DHAMS, error) {
	if o.Persistence == 0 {
		o.Persistence = 0.9
	}
	if !(o.Persistence > 0 && o.Persistence < 1) {
		return nil, &OptionError{"dhams", "persistence", strconv.FormatFloat(o.Persistence, 'g', -1, 64), "must be above 0 and below 1"}
	}
	return newDHAMS("dhams", e, o.StepSize, o.Persistence)
}

func newDHAMS(name string, e energies.Energy, step, keep float64) (*DHAMS, error) {
	eval, err := NewInformed(name, e, Sqrt, true)
	if err != nil {
		return nil, err
	}
	tuner := &Tuner{Var: StepSizeVar, Start: step}
	if step == 0 {
		tuner.Start = math.Sqrt(e.Space().SquaredDistance(0, 1)) / 2
	}
	if err := checkPositive(name, "step-size", tuner.Start); err != nil {
		return nil, err
	}
	k := &DHAMS{Metropolis: &Metropolis{Evaluator: eval}, keep: keep}
	k.Proposal, k.Prepare = k, k.prepare
	k.adapt(tuner, step == 0)
	if keep > 0 {
		k.Specs = append(k.Specs, VarSpec{Name: MomentumVar, Shape: []int{k.size()}})
	}
	return k, nil
}

// size is the number of auxiliary variables of a chain.
func (k *DHAMS) size() int {
	sp := k.Oracle.Space()
	if sp.Kind == energies.Categorical {
		return sp.Sites * sp.Values
	}
	return sp.Sites
}

// Init implements Kernel. A momentum that a state lacks is drawn.
func (k *DHAMS) Init(ctx context.Context, s *State) error {
	lacks := k.keep > 0 && s.Var(MomentumVar) == nil
	if err := k.Metropolis.Init(ctx, s); err != nil || !lacks {
		return err
	}
	u := s.Var(MomentumVar)
	n := len(u) / s.Chains()
	var stream rng.Stream
	for c := range s.Chains() {
		s.Stream(&stream, c, UseMomentum)
		for j := range n {
			u[c*n+j] = stream.Normal()
		}
	}
	return nil
}

// Step implements Kernel.
func (k *DHAMS) Step(ctx context.Context, s *State, info *Info) error {
	if err := k.Metropolis.Step(ctx, s, info); err != nil || k.keep == 0 {
		return err
	}
	u, n, delta := s.Var(MomentumVar), k.size(), s.Var(StepSizeVar)
	for c, ok := range info.Accepted {
		for j := c * n; j < (c+1)*n; j++ {
			if u[j] = -k.half[j]; ok {
				u[j] = (k.code(s.X, c, j-c*n) - k.z[j]) / delta[c]
			}
		}
	}
	return nil
}

// prepare makes room for a step.
func (k *DHAMS) prepare(s *State) {
	k.half, k.z = resize(k.half, s.Chains()*k.size()), resize(k.z, s.Chains()*k.size())
}

// code is the j-th element of s(x).
func (k *DHAMS) code(x energies.Batch, c, j int) float64 {
	if x.Space.Kind != energies.Categorical {
		return float64(x.Space.Number(x.Chain(c)[j]))
	}
	if int(x.Chain(c)[j/x.Space.Values]) == j%x.Space.Values {
		return 1
	}
	return 0
}

// Draw implements Proposal.
func (k *DHAMS) Draw(w *Worker, s *State, c int, next []int32) float64 {
	n, delta := k.size(), s.Var(StepSizeVar)[c]
	half, z := k.half[c*n:(c+1)*n], k.z[c*n:(c+1)*n]
	for j := range half {
		half[j] = w.Normal()
		if k.keep > 0 {
			half[j] = k.keep*s.Var(MomentumVar)[c*n+j] + math.Sqrt(1-k.keep*k.keep)*half[j]
		}
		z[j] = k.code(s.X, c, j) + delta*half[j]
	}
	row, logq := w.Row(s.X.Space.Values), 0.0
	for i := range next {
		k.weigh(row, s, &s.Point, c, i)
		total := logSumExp(row)
		next[i] = pickLog(row, total, w.Float64())
		logq += row[next[i]] - total
	}
	return logq
}

// weigh fills row with the log-weights of site i at p, given z.
func (k *DHAMS) weigh(row []float64, s *State, p *Point, c, i int) {
	sp, n, delta := s.X.Space, k.size(), s.Var(StepSizeVar)[c]
	p.LogRatios(row, c, i)
	for v := range row {
		if sp.Kind == energies.Categorical {
			row[v] += k.z[c*n+i*sp.Values+v] / (delta * delta) // up to a constant
			continue
		}
		t := (k.z[c*n+i] - float64(sp.Number(int32(v)))) / delta
		row[v] -= t * t / 2
	}
}

// LogReverse implements Proposal: log Q(x|z,x') + log N(u') - log N(u).
func (k *DHAMS) LogReverse(w *Worker, s *State, c int, next *Point) float64 {
	row, logq, n, delta := w.Row(s.X.Space.Values), 0.0, k.size(), s.Var(StepSizeVar)[c]
	for i, v := range s.X.Chain(c) {
		k.weigh(row, s, next, c, i)
		logq += row[v] - logSumExp(row)
	}
	for j, u := range k.half[c*n : (c+1)*n] {
		back := (k.code(next.X, c, j) - k.z[c*n+j]) / delta
		logq += (u*u - back*back) / 2
	}
	return logq
}
