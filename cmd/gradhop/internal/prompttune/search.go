package prompttune

import (
	"context"
	"strconv"
	"time"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// batchFlag is the option of stochastic samplers that --image-batch sets.
const batchFlag = "batch"

// registration returns the sampler and its options.
func (s *Search) registration() (samplers.Registration, samplers.Settings, error) {
	reg, err := samplers.Lookup(s.Sampler)
	if err != nil {
		return reg, nil, err
	}
	options := samplers.Settings{}
	for name, value := range s.Options {
		options[name] = value
	}
	if s.ImageBatch == 0 {
		return reg, options, nil
	}
	has := false
	for _, f := range reg.Flags {
		has = has || f.Name == batchFlag
	}
	switch {
	case !has:
		return reg, nil, app.Usagef("--image-batch: %s always uses all pictures; sgdld can draw some", reg.Name)
	case options[batchFlag] != "":
		return reg, nil, app.Usagef("--image-batch and --%s are given; they mean the same", batchFlag)
	}
	options[batchFlag] = strconv.Itoa(s.ImageBatch)
	return reg, options, nil
}

// Try finds what is wrong with the sampler's settings before a model is loaded. models is
// the number of models.
func (s *Search) Try(models int) error {
	reg, options, err := s.registration()
	if err != nil {
		return err
	}
	if _, err := samplers.ParseSchedule(s.Beta, s.Warmup+s.Steps); err != nil {
		return err
	}
	var e energies.Energy = embeddedProbe{}
	if models > 1 {
		e = probe{}
	}
	_, err = reg.New(e, options)
	return err
}

// Finder is a search that is ready to begin.
type Finder struct {
	Best *task.Best
	// Improved is called after each step whose best prompt beats all before; it may be nil.
	Improved func(task.Prompt) error
	// Stepped is called after every step; it may be nil.
	Stepped func(s *samplers.State, info *samplers.Info)
	// Config is what the loop is made of; observers may be added to it.
	Config samplers.Config
	// Options are those of the sampler that were set, Estimates says that its U is a noisy
	// one.
	Options   samplers.Settings
	Estimates bool

	search  *Search
	last    int64 // step of the last improvement
	stopped string
	ctx     context.Context
}

// NewFinder builds the sampler. Errors are those of package samplers.
func NewFinder(p *task.Problem, s *Search, roundTrip bool) (*Finder, error) {
	reg, options, err := s.registration()
	if err != nil {
		return nil, err
	}
	kernel, err := reg.New(p.Energy, options)
	if err != nil {
		return nil, err
	}
	r := &Finder{search: s, stopped: "steps"}
	r.Config = samplers.Config{Kernel: kernel, Chains: s.Chains, Steps: s.Steps, Warmup: s.Warmup, Seed: s.Seed}
	if a, ok := kernel.(samplers.Annealer); ok && a.Anneals() {
		if r.Config.InverseTemperature, err = samplers.ParseSchedule(s.Beta, s.Warmup+s.Steps); err != nil {
			return nil, err
		}
	} else if s.BetaSet {
		return nil, app.Usagef("--beta: %s knows no temperature", reg.Name)
	}
	r.Options, r.Estimates = options, options[batchFlag] != "" && options[batchFlag] != "0"
	r.Best = task.NewBest(p, task.BestOptions{Keep: s.Top, RoundTrip: roundTrip, Estimates: r.Estimates})
	r.Config.Observers = []samplers.Observer{samplers.ObserverFunc(r.observe)}
	return r, nil
}

// observe collects the states of a step and looks whether to go on.
func (r *Finder) observe(s *samplers.State, info *samplers.Info) error {
	better, err := r.Best.Add(r.ctx, s.Step, s.ChainIDs, s.InverseTemperature(), s.U, s.X)
	if err != nil {
		return err
	}
	if better {
		r.last = s.Step
		if r.Improved != nil {
			if err := r.Improved(r.Best.Prompts()[0]); err != nil {
				return err
			}
		}
	}
	if r.Stepped != nil {
		r.Stepped(s, info)
	}
	if n := int64(r.search.Patience); n > 0 && s.Step-r.last >= n && s.Step < int64(r.search.Warmup+r.search.Steps) {
		r.stopped = "patience"
		return samplers.ErrStop
	}
	return nil
}

// Loop makes the first evaluation. Errors are those of samplers.NewLoop.
func (r *Finder) Loop(ctx context.Context) (*samplers.Loop, error) {
	r.ctx = ctx
	return samplers.NewLoop(ctx, r.Config)
}

// Steps makes the steps, until there is a reason to stop; which one it was is returned
// with an error too.
func (r *Finder) Steps(ctx context.Context, loop *samplers.Loop) (stopped string, took time.Duration, err error) {
	r.ctx = ctx
	began := time.Now()
	for !loop.Done() {
		if limit := r.search.TimeLimit; limit > 0 && time.Since(began) >= limit {
			return "time", time.Since(began), nil
		}
		if err := loop.Step(ctx); err != nil {
			return "interrupted", time.Since(began), err
		}
	}
	return r.stopped, time.Since(began), nil
}

// diagnose sums up what a loop did.
func diagnose(loop *samplers.Loop, best *task.Best, took time.Duration) Diagnostics {
	r := loop.Result()
	d := Diagnostics{
		Steps: r.Steps, Evaluations: r.State.Evaluations, Rescored: best.Scored(), Seconds: took.Seconds(),
		Acceptance: run.NaN, Hops: run.NaN,
	}
	if r.Kept > 0 {
		d.Acceptance, d.Hops = mean(r.Acceptance), mean(r.Hops)
	}
	return d
}

func mean(x []float64) run.Number {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return run.Number(sum / float64(len(x)))
}
