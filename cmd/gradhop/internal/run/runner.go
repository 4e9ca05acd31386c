package run

import (
	"context"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
	"github.com/gradhop/gradhop/tasks/infill"
)

// useStart is the use of the random streams that initial states are drawn from.
// Package samplers numbers its own uses from 1; those of tasks begin here.
const useStart uint32 = 1 << 16

// Runner is a model ready to run on texts. Its sessions are opened when they are first
// needed and shared by all texts. It is safe for concurrent use.
type Runner struct {
	// Energy is what it was opened with.
	Energy Energy
	model  *infill.Model
}

// Open finds the runtime's library (fetching it if rt allows) and loads the model. The
// model is read first, so that a wrong name or folder costs no fetch.
func Open(ctx context.Context, e Energy, h hub.Options, rt ort.Options) (*Runner, error) {
	m, err := e.Load(ctx, h, rt)
	if err != nil {
		return nil, err
	}
	if err := ort.Init(ctx, rt); err != nil {
		return nil, err
	}
	return &Runner{Energy: e, model: m}, nil
}

// Load reads the model, for a runtime whose library is found later.
func (e Energy) Load(ctx context.Context, h hub.Options, rt ort.Options) (*infill.Model, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	src, err := models.Open(ctx, e.Model, h)
	if err != nil {
		return nil, err
	}
	o := e.options()
	o.Runtime = rt
	o.Runtime.Progress = nil // nothing is fetched any more when sessions are opened
	return infill.Load(src, o)
}

// Starts draws the states that chains start from, [chain, site].
func (c Chains) Starts(ctx context.Context, p *infill.Problem, ids []int64) ([]int32, error) {
	return p.Starts(ctx, infill.Start(c.Init), ids, func(chain int64) func() float64 {
		var s rng.Stream
		s.Reset(c.Seed, chain, 0, useStart)
		return s.Float64
	})
}

// Source is the model that the runner uses.
func (r *Runner) Source() models.Model { return r.model.Source }

// Close frees the runtime's sessions.
func (r *Runner) Close() error { return r.model.Close() }

// Infill runs chains on the fillings of a text. progress, which may be nil, is called
// after every step with the steps done.
//
// Where the context ends while chains run, the result of the steps made comes with its
// error and Interrupted set. Other errors are those of the text (infill.InputError), of
// the settings, of the runtime, or of the sampler.
func (r *Runner) Infill(ctx context.Context, text string, c Chains, progress func(done, total int)) (*Result, error) {
	p, err := r.model.Text(text, infill.TextOptions{Pieces: c.Pieces})
	if err != nil {
		return nil, err
	}
	kernel, err := c.kernel(p.Energy)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, c.Chains)
	for k := range ids {
		ids[k] = int64(k)
	}
	start, err := c.Starts(ctx, p, ids)
	if err != nil {
		return nil, err
	}
	best := infill.NewBest(p, c.Top)
	trace := &trace{}
	loop, err := samplers.NewLoop(ctx, samplers.Config{
		Kernel: kernel, Chains: c.Chains, ChainIDs: ids, Init: start, Steps: c.Steps, Warmup: c.Warmup, Seed: c.Seed,
		Observers: []samplers.Observer{
			samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
				best.Add(s.Step, s.ChainIDs, s.U, s.X)
				return nil
			}),
			trace,
		},
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for !loop.Done() && err == nil {
		if err = loop.Step(ctx); err == nil && progress != nil {
			progress(int(loop.State().Step), c.Warmup+c.Steps)
		}
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	res := result(p, best, r.Energy.Temperature)
	res.Interrupted = err != nil
	res.Diagnostics = diagnose(loop, trace, time.Since(began))
	return res, err
}

// Try evaluates one state of a short text, so that whatever is wrong with the model, the
// runtime or its provider shows.
func (r *Runner) Try(ctx context.Context) error {
	p, err := r.model.Text(r.model.Mask(), infill.TextOptions{})
	if err != nil {
		return err
	}
	x := energies.Batch{Space: p.Energy.Space(), Codes: p.Energy.Space().AllowedAt(0)[:1]}
	return p.Energy.LogDensityGrad(ctx, make([]float64, 1), make([]float32, x.Space.Values), x)
}
