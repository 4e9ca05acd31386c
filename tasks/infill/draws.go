package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/samplers/rng"
	"github.com/gradhop/gradhop/tasks/internal/run"
)

// useStart is the use of the random streams that initial states are drawn from.
// Package samplers numbers its own uses from 1; those of tasks begin here.
const useStart uint32 = 1 << 16

// DrawOptions say how sentences are drawn. [DefaultDraws] has the defaults; zero fields
// mean zero.
type DrawOptions struct {
	// Sampler is a registered name, Options its options by name.
	Sampler string
	Options samplers.Settings
	// Draft is a cheap stand-in for the model, by which Sampler proposes and the model accepts, so
	// that draws remain those of the model: the same model on another provider, as
	// "openvino:cpu,bf16" or "bf16" for short, or the name of another model of the same vocabulary,
	// as for [Open]; "int8" is the model with products of integers, "" is none. See
	// the sampler two-stage, whose options are then among Options.
	Draft string
	// Chains is the number of chains, which run as one batch.
	Chains int
	// Steps is the number of sweeps of each chain, after Warmup sweeps that are dropped and
	// in which the sampler is tuned. A sweep is as many steps of the sampler as there are
	// blanks, so that samplers of one blank a step have visited each; a step on a draft counts as
	// many as its draft steps. Diagnostics are of all
	// sweeps; sentences are the states after every Thin-th, 0 meaning every one. Comparisons of
	// package eval count single steps of the sampler instead, and do not thin.
	Steps, Warmup, Thin int
	// Init is where chains start.
	Init Start
	// Jumps is the number of the best fillings of a search among which chains of mwg without a draft
	// jump (see samplers.Darting), at most 500; 0 means that they do not. Other samplers ignore it.
	Jumps int
	// Seed is that of all random numbers.
	Seed uint64

	folder *folder // nil where draws are not kept
}

// DefaultDraws returns the settings by which n sentences are drawn: Metropolis within Gibbs
// with the model's prediction as proposal, in 4 chains that start from the fillings that a
// search found best and jump among them; see README.md for the measurement.
func DefaultDraws(n int) DrawOptions {
	o := DrawOptions{Sampler: "mwg", Options: samplers.Settings{}, Chains: 4, Init: StartSearch, Jumps: mostFound}
	o.spread(n)
	o.Warmup = o.DefaultWarmup()
	return o
}

// DefaultWarmup is 10 sweeps for mwg, which has nothing to tune, and an eighth of Steps, at least 10, for other samplers.
func (o *DrawOptions) DefaultWarmup() int {
	if o.Sampler == "mwg" && o.Draft == "" {
		return 10
	}
	return max(10, o.Steps/8)
}

// minSweeps is the number of sweeps of each chain from which diagnostics can judge mixing.
const minSweeps = 200

// spread sets Steps and Thin to those that yield n sentences and can be judged.
func (o *DrawOptions) spread(n int) {
	each := max(1, (n+o.Chains-1)/o.Chains)
	o.Thin = (minSweeps + each - 1) / each
	o.Steps = each * o.Thin
}

// answers is what the energy of a text with blanks answers.
var answers = energies.Gradient | energies.Tilt | energies.Predictions

// Check returns an error for settings that no text can make right: an *InputError, or that
// of the sampler.
func (o *DrawOptions) Check() error {
	switch o.Init {
	case StartSearch, StartMask, StartArgmax, StartRandom:
	default:
		return badOption("init", "%q: want search, mask, argmax or random", o.Init)
	}
	switch {
	case o.Chains < 1 || o.Chains > 1<<20:
		return badOption("chains", "%d: want 1 to 2^20", o.Chains)
	case o.Jumps < 0 || o.Jumps > mostFound:
		return badOption("jumps", "%d: want 0 to %d", o.Jumps, mostFound)
	case o.Steps < 0 || o.Warmup < 0 || o.Steps+o.Warmup == 0 || o.Thin < 0:
		return badOption("sweeps, warmup and thin", "%d, %d and %d: want 0 or more each, and not both sweeps and warmup 0", o.Steps, o.Warmup, o.Thin)
	}
	r, set, err := o.sampler()
	if err != nil {
		return err
	}
	return r.Check(answers, set)
}

func chainIDs(n int) []int64 {
	ids := make([]int64, n)
	for k := range ids {
		ids[k] = int64(k)
	}
	return ids
}

// sweep is the number of steps of the sampler in which it makes as many moves as there are blanks.
func (o *DrawOptions) sweep(blanks int) int {
	r, set, err := o.sampler()
	if err != nil || o.Draft == "" {
		return blanks
	}
	k, err := strconv.Atoi(r.Settings(set)["draft-steps"])
	if err != nil {
		return blanks
	}
	return (blanks + k - 1) / k
}

func (o *DrawOptions) jumps() int {
	if o.Sampler != "mwg" || o.Draft != "" {
		return 0
	}
	return o.Jumps
}

// Draws is what a run of chains came to.
type Draws struct {
	// Sentences are the draws, sweep by sweep and in each sweep chain by chain.
	Sentences []Draw
	// Best are the best distinct sentences that chains visited, warm-up included.
	Best        []Visited
	Diagnostics Diagnostics
	// Interrupted says that the run ended early.
	Interrupted bool
}

// Draw is a sentence of a chain.
type Draw struct {
	Sentence
	Chain int64 `json:"chain"`
	Step  int64 `json:"step"` // counted from 1, warm-up included
}

// Starts draws the states that chains of the given numbers start from, [chain, site].
func (o DrawOptions) Starts(ctx context.Context, p *Problem, ids []int64) ([]int32, error) {
	return p.Starts(ctx, o.Init, ids, func(chain int64) func() float64 {
		var s rng.Stream
		s.Reset(o.Seed, chain, 0, useStart)
		return s.Float64
	})
}

// Draw runs chains on the fillings of the text and keeps the best top distinct sentences
// that they visit. progress, which may be nil, is called with each phase and how far it is: the search
// for starts in sequences, then warm-up and draws in steps of the sampler.
//
// Where ctx ends early, the draws so far come with its error and Interrupted set; where it ends during the search
// for starts, there are none. Other errors are those of Check, of the runtime or of the sampler.
func (p *Problem) Draw(ctx context.Context, o DrawOptions, top int, progress func(phase string, done, total int)) (*Draws, error) {
	began := time.Now()
	if progress == nil {
		progress = func(string, int, int) {}
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	reg, set, err := o.sampler()
	if err != nil {
		return nil, err
	}
	energy, err := p.energy(ctx, &o, reg, set)
	if err != nil {
		return nil, err
	}
	kernel, err := reg.New(energy, set)
	if err != nil {
		return nil, err
	}
	if n := o.jumps(); n > 0 || o.Init == StartSearch && p.foundU == nil {
		f, err := p.found(ctx, func(done int) {
			if done <= startSequences { // later it goes on between steps
				progress("search for starts", done, startSequences)
			}
		})
		defer f.stop()
		switch {
		case err != nil && ctx.Err() != nil && p.foundU != nil:
			return &Draws{Interrupted: true, Diagnostics: newDiagnostics(o.Chains, time.Since(began).Seconds())}, err
		case err != nil:
			return nil, err
		case n > 0:
			// The search gets half again as much as the chains need at most, which redraw one blank a step.
			share := 3 * o.Chains * (o.Warmup + o.Steps) * len(p.Blanks) * max(1, len(p.Blanks)-1) / 2
			kernel = &jumping{Kernel: kernel, f: f, most: n, share: share}
		}
	}
	ids := chainIDs(o.Chains)
	each := o.sweep(len(p.Blanks))
	best, t, out := newBest(p, top), &trace{}, &Draws{}
	sweeps := 0
	config := samplers.Config{
		Kernel: kernel, Chains: o.Chains, ChainIDs: ids,
		Steps: o.Steps * each, Warmup: o.Warmup * each, Thin: each, Seed: o.Seed,
		Observers: []samplers.Observer{t, samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
			best.Add(s.Step, s.ChainIDs, s.U, s.X)
			if info.Keep {
				if sweeps++; sweeps%max(1, o.Thin) == 0 {
					out.add(p, s)
				}
			}
			return nil
		})},
	}
	before := time.Since(began)
	r, err := o.folder.begin(ctx, config, func() ([]int32, error) { return o.Starts(ctx, p, ids) })
	if err != nil {
		return nil, err
	}
	for !r.Loop.Done() && err == nil {
		if err = r.Loop.Step(ctx); err != nil {
			break
		}
		if done := int(r.Loop.State().Step) - config.Warmup; done <= 0 {
			progress("warm-up", done+config.Warmup, config.Warmup)
		} else {
			progress("draws", done, config.Steps)
		}
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	out.Best, out.Interrupted = best.Sentences(), err != nil
	out.Diagnostics = diagnose(r, t, before)
	return out, err
}

func (d *Draws) add(p *Problem, s *samplers.State) {
	for c, id := range s.ChainIDs {
		d.Sentences = append(d.Sentences, Draw{p.Sentence(s.X.Chain(c), s.U[c]*p.m.temperature()), id, s.Step})
	}
}

// target is the energy with the constraint of NoRepeat, in the form that is the fastest for
// what a sampler needs.
func (p *Problem) target(needs energies.Capability) mlm.Filling {
	e := mlm.Filling(p.Energy)
	if needs.Has(energies.Predictions) {
		e = p.Energy.Predicted()
	}
	if len(p.terms) > 0 {
		e = guided{e, p}
	}
	if p.noRepeat {
		e = distinct{e, p}
	}
	return e
}

// distinct gives states that NoRepeat forbids the probability zero.
type distinct struct {
	mlm.Filling
	p *Problem
}

// Lacks implements what energies.As asks for.
func (d distinct) Lacks(c energies.Capability) error { return energies.Lacks(d.Filling, c) }

func (d distinct) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return d.forbid(u, x, d.Filling.LogDensity(ctx, u, x))
}

func (d distinct) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	return d.forbid(u, x, d.Filling.LogDensityGrad(ctx, u, g, x))
}

func (d distinct) LogDensityTilt(ctx context.Context, u []float64, p []float32, x energies.Batch) error {
	return d.forbid(u, x, d.Filling.LogDensityTilt(ctx, u, p, x))
}

// forbid sets U of the forbidden states, unless there is an error.
func (d distinct) forbid(u []float64, x energies.Batch, err error) error {
	for c := range u {
		codes := x.Chain(c)
		for i, w := range codes {
			if err == nil && !d.p.admits(codes, i, w) {
				u[c] = math.Inf(-1)
			}
		}
	}
	return err
}

// Diagnostics sum a run up, over the steps after warm-up where not said otherwise.
type Diagnostics struct {
	// Steps is the number of steps of each chain after warm-up.
	Steps int64 `json:"steps"`
	// Acceptance is the mean acceptance probability, Hops the mean number of blanks
	// that a step changes.
	Acceptance diag.Number `json:"acceptance"`
	Hops       diag.Number `json:"hops"`
	// StepSize is the median over the chains; NA for samplers without one.
	StepSize diag.Number `json:"step_size"`
	// RHat and ESSBulk are of the log-density.
	RHat    diag.Number `json:"rhat"`
	ESSBulk diag.Number `json:"ess_bulk"`
	// RHatBlanks and ESSBlanks are those of the blank that mixes worst, judged by its
	// most frequent word.
	RHatBlanks diag.Number `json:"rhat_blanks"`
	ESSBlanks  diag.Number `json:"ess_bulk_blanks"`
	// Verdict is "mixed", or says what is wrong and what to try.
	Verdict string `json:"verdict"`
	// DraftRejected and ModelRejected are the shares of steps that the draft rejects, and of the
	// remaining moves that the model rejects; nil without a draft.
	DraftRejected *diag.Number `json:"draft_rejected,omitempty"`
	ModelRejected *diag.Number `json:"model_rejected,omitempty"`
	// Evaluations is the number of states evaluated, warm-up and the states that chains
	// start from included.
	Evaluations int64 `json:"evaluations"`
	// Seconds is the time of the search for starts and of all steps, without loading the model.
	Seconds float64 `json:"seconds"`
}

// Mixed reports whether the chains agree: both R-hat are below 1.05.
func (d *Diagnostics) Mixed() bool { return d.Verdict == verdictMixed }

const verdictMixed = "mixed"

// newDiagnostics are those of chains that have made no step.
func newDiagnostics(chains int, seconds float64) Diagnostics {
	d := Diagnostics{Acceptance: diag.NA, Hops: diag.NA, StepSize: diag.NA, RHat: diag.NA, ESSBulk: diag.NA, RHatBlanks: diag.NA, ESSBlanks: diag.NA, Seconds: seconds}
	d.Verdict = d.verdict(chains)
	return d
}

// diagnose sums up a run, which took some seconds before its first step.
func diagnose(r *run.Run, t *trace, before time.Duration) Diagnostics {
	s, tally := r.Loop.State(), r.Tally()
	d := newDiagnostics(s.Chains(), before.Seconds()+tally.Seconds)
	d.Steps, d.Evaluations = tally.Kept, s.Evaluations.Total()
	d.Acceptance, d.Hops = tally.Means()
	if sizes := slices.Clone(s.Var(samplers.StepSizeVar)); len(sizes) > 0 {
		slices.Sort(sizes)
		d.StepSize = diag.Number((sizes[len(sizes)/2] + sizes[(len(sizes)-1)/2]) / 2)
	}
	if rates := s.Var(samplers.DraftAcceptanceVar); rates != nil {
		first, second := t.stages.Rejected()
		d.DraftRejected, d.ModelRejected = new(diag.Number(first)), new(diag.Number(second))
	}
	d.RHat, d.ESSBulk = t.density()
	d.RHatBlanks, d.ESSBlanks = t.blanks()
	d.Verdict = d.verdict(s.Chains())
	return d
}

// maxRHat is the R-hat up to which chains count as mixed.
const maxRHat = 1.05

// leastSteps is the number of steps from which halves of chains have a variance.
const leastSteps = 4

func (d *Diagnostics) verdict(chains int) string {
	worst := max(d.RHat, d.RHatBlanks)
	switch {
	case d.Steps == 0:
		return "not known: there are no draws"
	case chains == 1:
		return "not known: R-hat compares chains, and there is one; try more chains"
	case d.Steps < leastSteps:
		return fmt.Sprintf("not known: %d steps are too few to judge; try more draws", d.Steps)
	case !worst.Finite(): // NaN where one of the two is
		return fmt.Sprintf("not known: a blank never changes in the %d chains, but differs between them; try more draws or a higher temperature", chains)
	case worst < maxRHat:
		return verdictMixed
	}
	return fmt.Sprintf("not mixed: R-hat %s; try more draws or a higher temperature", worst.Text(2))
}
