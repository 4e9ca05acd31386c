package ebm

import (
	"context"
	"math"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/independent"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Names of the schedules of inverse temperatures.
const (
	Linear  = "linear"
	Sigmoid = "sigmoid"
)

// ScoreSettings describe annealed importance sampling. Zero fields mean defaults.
type ScoreSettings struct {
	// Base has the probabilities of the distribution to start from, [site, value]; nil
	// is uniform.
	Base []float64
	// Chains is the number of weights; 0 means 100. Levels is the number of inverse
	// temperatures above 0; 0 means 1,000.
	Chains, Levels int
	// Schedule is Linear (the default) or Sigmoid, which is denser at both ends.
	Schedule string
	// Sampler is a kernel that leaves exp(U) invariant, reversible for the reverse
	// direction; "" means gwg. Options are its settings, Steps the number of its steps a
	// level (0 means 1).
	Sampler string
	Options samplers.Settings
	Steps   int
	// Seed names all random numbers.
	Seed uint64
	// Progress, if not nil, is called after every level.
	Progress func(level, levels int)
}

// Score is an estimate of log Z = log Σ_x exp(U(x)).
type Score struct {
	// LogZ is the estimate in nats and StandardError that of LogZ, from 1,000 bootstrap
	// samples of the weights.
	LogZ          float64 `json:"log_z"`
	StandardError float64 `json:"log_z_se"`
	// Low is the mean log weight. Its expectation is at most log Z (at least, for a
	// reverse run), by Jensen's inequality.
	Low float64 `json:"mean_log_weight"`
	// ESS is the effective sample size of the weights, (Σw)²/Σw².
	ESS float64 `json:"weight_ess"`
	// LogWeights are the chains' log weights.
	LogWeights  []float64 `json:"log_weights"`
	Chains      int       `json:"chains"`
	Levels      int       `json:"levels"`
	Evaluations int64     `json:"evaluations"`
	Seconds     float64   `json:"seconds"`
}

// Collapsed reports whether few weights dominate the estimate, whose standard error is
// then not to be trusted.
func (s *Score) Collapsed() bool { return s.ESS < math.Max(3, 0.05*float64(s.Chains)) }

// Uses of random numbers in scoring.
const (
	useBase      uint32 = 11
	useLevel     uint32 = 12
	useBootstrap uint32 = 13
)

func (s *ScoreSettings) fill() error {
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	def(&s.Chains, 100)
	def(&s.Levels, 1000)
	def(&s.Steps, 1)
	if s.Sampler == "" {
		s.Sampler = "gwg"
	}
	s.Options = scanAtRandom(s.Sampler, s.Options)
	if s.Schedule == "" {
		s.Schedule = Linear
	}
	switch {
	case s.Chains < 2 || s.Chains > 1<<24:
		return inputError("%d chains; annealed importance sampling takes 2 to 2^24", s.Chains)
	case s.Levels < 1 || s.Steps < 1:
		return inputError("%d levels and %d steps a level; both must be at least 1", s.Levels, s.Steps)
	case s.Schedule != Linear && s.Schedule != Sigmoid:
		return inputError("schedule %q; want %s or %s", s.Schedule, Linear, Sigmoid)
	}
	r, err := samplers.Lookup(s.Sampler)
	if err != nil {
		return err
	}
	if !r.Exact {
		return inputError("sampler %q does not leave exp(U) invariant, so the weights would be wrong; use an exact one, such as gwg or dmala", s.Sampler)
	}
	return nil
}

// beta returns β of a level: 0 for level 0 and 1 for the last.
func (s *ScoreSettings) beta(level int) float64 {
	t := float64(level) / float64(s.Levels)
	if s.Schedule == Linear {
		return t
	}
	const steep = 4 // σ(±4): the ends get 7% of the linear spacing
	f := func(t float64) float64 { return 1 / (1 + math.Exp(-steep*(2*t-1))) }
	return (f(t) - f(0)) / (f(1) - f(0))
}

// AIS estimates log Z of e by annealed importance sampling (Neal 2001) along
//
//	U_β = (1-β)·log p₀ + β·U,  β from 0 to 1,
//
// where p₀ is a product of independent sites from which chains start. The weight of a
// chain is w = Π_k exp((β_k - β_{k-1})·(U(x_k) - log p₀(x_k))), and E[w] = Z.
//
// With from not nil, [chain, site] states that are exact draws of exp(U), it runs in
// reverse (Burda, Grosse and Salakhutdinov 2015): then E[1/w] = 1/Z and the mean
// log weight is an upper bound in expectation. Errors are *Error or those of samplers.
func AIS(ctx context.Context, e energies.Energy, from []int32, s ScoreSettings) (*Score, error) {
	start := time.Now()
	space := e.Space()
	if from != nil {
		s.Chains = len(from) / space.Sites
	}
	if err := s.fill(); err != nil {
		return nil, err
	}
	base, err := independent.New(*space, s.Base)
	if err != nil {
		return nil, err
	}
	// Two states a chain, with gradients, are all that a level returns to.
	room := int64(2*s.Chains) * int64(4*space.Sites*space.Values+8*space.Sites+512)
	a := &annealing{s: s, base: base, model: energies.NewMemo(e, room), log: make([]float64, s.Chains)}
	x := energies.NewBatch(space, s.Chains)
	if copy(x.Codes, from); from == nil {
		var r rng.Stream
		for c := range s.Chains {
			r.Reset(s.Seed, int64(c), 0, useBase)
			base.Draw(x.Chain(c), &r)
		}
	}
	for k := 1; k <= s.Levels; k++ {
		level, next := k-1, k
		if from != nil {
			level, next = s.Levels-k+1, s.Levels-k
		}
		if err := a.level(ctx, x, level, next, k == s.Levels); err != nil {
			return nil, err
		}
		if s.Progress != nil {
			s.Progress(k, s.Levels)
		}
	}
	out := &Score{LogWeights: a.log, Chains: s.Chains, Levels: s.Levels, Evaluations: a.evaluations}
	out.summarise(s.Seed, from != nil)
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// annealing is a run in progress.
type annealing struct {
	s           ScoreSettings
	base        *independent.Energy
	model       *energies.Memo
	log         []float64 // [chain]
	evaluations int64
}

// level weighs the states x for going from β of one level to the next, and moves them by
// the next one's kernel unless they are the last.
func (a *annealing) level(ctx context.Context, x energies.Batch, from, to int, last bool) error {
	b0, b1 := a.s.beta(from), a.s.beta(to)
	n := x.Chains()
	u, lp := make([]float64, n), make([]float64, n)
	sum, err := energies.NewSum(energies.Term{Weight: 1 - b1, Energy: a.base}, energies.Term{Weight: b1, Energy: a.model})
	if err != nil {
		return err
	}
	if !last {
		kernel, err := samplers.New(a.s.Sampler, sum, a.s.Options)
		if err != nil {
			return err
		}
		var r rng.Stream
		r.Reset(a.s.Seed, 0, int64(to), useLevel)
		before := x.Clone()
		loop, err := samplers.NewLoop(ctx, samplers.Config{Kernel: kernel, Init: x.Codes, Chains: n, Steps: a.s.Steps, Seed: r.Uint64()})
		if err != nil {
			return err
		}
		for !loop.Done() {
			if err := loop.Step(ctx); err != nil {
				return err
			}
		}
		a.evaluations += loop.State().Evaluations.Total() - int64(n) // the first is cached
		copy(x.Codes, loop.State().X.Codes)
		x = before
	}
	if err := gradientOf(ctx, a.model, u, x); err != nil {
		return err
	}
	if err := a.base.LogDensity(ctx, lp, x); err != nil {
		return err
	}
	for c := range n {
		a.log[c] += (b1 - b0) * (u[c] - lp[c])
	}
	return nil
}

// gradientOf asks for U in the way that the kernel did, so that it is cached.
func gradientOf(ctx context.Context, m *energies.Memo, u []float64, x energies.Batch) error {
	if !m.Capabilities().Answers.Has(energies.Gradient) {
		return m.LogDensity(ctx, u, x)
	}
	g := make([]float32, len(x.Codes)*x.Space.Values)
	return m.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: u, Grad: g})
}

// summarise fills in the estimates from the log weights.
func (s *Score) summarise(seed uint64, reverse bool) {
	sign := 1.0
	if reverse {
		sign = -1
	}
	n := len(s.LogWeights)
	all := make([]int, n)
	for c := range all {
		all[c] = c
		s.Low += sign * s.LogWeights[c] / float64(n)
	}
	logMean, ess := logMeanExp(s.LogWeights, all)
	s.LogZ, s.ESS = sign*logMean, ess
	const samples = 1000
	var r rng.Stream
	r.Reset(seed, 0, 0, useBootstrap)
	mean, square := 0.0, 0.0
	for range samples {
		for c := range all {
			all[c] = r.IntN(n)
		}
		v, _ := logMeanExp(s.LogWeights, all)
		mean += (v - logMean) / samples
		square += (v - logMean) * (v - logMean) / samples
	}
	s.StandardError = math.Sqrt(math.Max(0, square-mean*mean))
}

// logMeanExp returns log (1/n)Σ exp(w) over the chosen weights, and their effective
// sample size.
func logMeanExp(w []float64, chosen []int) (mean, ess float64) {
	most := math.Inf(-1)
	for _, c := range chosen {
		most = math.Max(most, w[c])
	}
	sum, square := 0.0, 0.0
	for _, c := range chosen {
		v := math.Exp(w[c] - most)
		sum += v
		square += v * v
	}
	return most + math.Log(sum/float64(len(chosen))), sum * sum / square
}
