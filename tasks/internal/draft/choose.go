package draft

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// Auto is the draft, or the number of draft steps, that a task chooses by measuring.
const Auto = "auto"

// stepsOption is the option of the two-stage sampler for the number of steps on the draft.
const stepsOption = "draft-steps"

// IsAuto reports whether there is something to choose.
func IsAuto(draft string, set samplers.Settings) bool {
	return draft == Auto || set[stepsOption] == Auto
}

// Candidates are the drafts that "auto" tries: those that need nothing to be fetched.
func Candidates(ctx context.Context, o ort.Options) []string {
	list := []string{"int8"}
	o.Provider, o.NoFetch = short["bf16"], true
	if ort.LoadProvider(ctx, o) == nil {
		list = append(list, "bf16")
	}
	return list
}

// Pilot measures drafts before a run.
type Pilot struct {
	// Sampler and Settings are those of the run.
	Sampler  string
	Settings samplers.Settings
	// Energy returns the energy with a draft; "" is none.
	Energy func(ctx context.Context, draft string, r samplers.Registration, set samplers.Settings) (energies.Energy, error)
	// Config has the chains, Init and the seed of the run. Warmup steps come before the
	// measurements: from where they lead, every candidate is measured.
	Config samplers.Config
	// Log takes a line for each measurement.
	Log func(line string)

	measured uint64    // measurements so far
	u        []float64 // U of all their chains after every step
}

type measurement struct {
	jump float64 // mean squared change of U in a step
	time float64 // seconds of a step, divided by the number of chains
}

// Steps of each measurement, after as many in which the sampler is tuned.
const (
	tuning    = 20
	measuring = 40
)

// gain is how much better than no draft a draft must be.
const gain = 1.1

// Choose returns the draft and the settings of the run. It measures each draft with 1, 2, 4, ... steps
// on it, or with the number that the settings give, until more steps are no better. Where draft is
// Auto, no draft is a choice too. A draft is left out if its provider is missing or computes the model
// wrongly.
//
// The measure is the effective number of draws of U in a second by the clock, estimated from the squared
// jumps of U: see rate. It is not that of processor time: users wait by the clock, and an int8 draft
// keeps one core busy where the model in float32 uses all.
// The choice depends on the machine and on what else it does, so a run records it.
func (p *Pilot) Choose(ctx context.Context, draft string, o ort.Options) (string, samplers.Settings, error) {
	drafts, chosen, steps := []string{draft}, draft, 0
	var best, plain measurement
	if draft == Auto {
		drafts, chosen = Candidates(ctx, o), ""
		var err error
		if plain, err = p.measure(ctx, "", 0); err != nil {
			return "", nil, err
		}
	}
	for _, name := range drafts {
		k, m, err := p.tune(ctx, name)
		missing := (*ort.UnavailableError)(nil)
		if draft == Auto && errors.As(err, &missing) && ctx.Err() == nil {
			p.Log(fmt.Sprintf("draft %s: %v", name, err))
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if r := p.rate(m); r > p.rate(best) && r > gain*p.rate(plain) || steps == 0 && draft != Auto {
			best, chosen, steps = m, name, k
		}
	}
	set := maps.Clone(p.Settings)
	if set == nil {
		set = samplers.Settings{}
	}
	delete(set, stepsOption)
	flags := "no draft"
	if chosen != "" {
		set[stepsOption] = strconv.Itoa(steps)
		flags = fmt.Sprintf("draft %s with draft-steps %d", chosen, steps)
	}
	p.Log(fmt.Sprintf("%s is the best measured; with it and seed %d the run is repeated", flags, p.Config.Seed))
	return chosen, set, nil
}

// rate returns effective draws of U in a second. Chains of 40 steps are too short to estimate them from
// autocorrelations: where a draw takes 200 steps they show six draws in place of one, for every number of
// draft steps. The squared jumps give the correlation ρ of successive draws, 1 - jump/(2·variance), and
// (1-ρ)/(1+ρ) is the share of effective draws if U is an autoregressive process of order one. All
// measurements have the same variance, since their chains have the same law.
func (p *Pilot) rate(m measurement) float64 {
	if m.jump == 0 {
		return 0
	}
	rho := max(0, 1-m.jump/(2*stat.Variance(p.u, nil)))
	return (1 - rho) / (1 + rho) / m.time
}

// tune returns the best number of steps on a draft, and its measurement.
func (p *Pilot) tune(ctx context.Context, draft string) (steps int, best measurement, err error) {
	if text := p.Settings[stepsOption]; text != "" && text != Auto {
		steps, err = strconv.Atoi(text)
		if err == nil {
			best, err = p.measure(ctx, draft, steps)
		}
		return steps, best, err
	}
	for k := 1; k <= 64; k *= 2 {
		m, err := p.measure(ctx, draft, k)
		if err != nil {
			return 0, best, err
		}
		if steps > 0 && p.rate(m) <= p.rate(best) {
			break
		}
		steps, best = k, m
	}
	return steps, best, nil
}

// measure runs chains with k steps on a draft.
func (p *Pilot) measure(ctx context.Context, draft string, k int) (m measurement, err error) {
	set := maps.Clone(p.Settings)
	if set == nil {
		set = samplers.Settings{}
	}
	if delete(set, stepsOption); draft != "" {
		set[stepsOption] = strconv.Itoa(k)
	}
	name, set, err := Sampler(draft, p.Sampler, set)
	if err != nil {
		return m, err
	}
	reg, err := samplers.Lookup(name)
	if err != nil {
		return m, err
	}
	energy, err := p.Energy(ctx, draft, reg, set)
	if err != nil {
		return m, err
	}
	c := p.Config
	if c.Kernel, err = reg.New(energy, set); err != nil {
		return m, err
	}
	p.measured++
	c.Thin, c.Steps, c.Seed = 1, measuring, c.Seed+p.measured<<32 // no random number is used twice
	if p.Config.Warmup > 0 {                                      // the first measurement, without a draft or with one
		p.Config.Warmup = 0
	} else {
		c.Warmup = tuning
	}
	m, stages, err := p.run(ctx, c)
	if err != nil {
		return m, err
	}
	first, second := stages.Rejected()
	line := samplers.DescribeStages(draft, first, second)
	if draft == "" {
		p.Log(fmt.Sprintf("no draft: %.3g effective draws of U a second", p.rate(m)))
	} else {
		p.Log(fmt.Sprintf("%d draft steps: %.3g effective draws of U a second; %s", k, p.rate(m), line))
	}
	return m, nil
}

// run makes the steps of a measurement and keeps where they lead.
func (p *Pilot) run(ctx context.Context, c samplers.Config) (m measurement, stages samplers.Stages, err error) {
	var last []float64
	var began time.Time
	jumps := 0.0
	c.Observers = []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		if !info.Keep {
			last, began = slices.Clone(s.U), time.Now()
			return nil
		}
		for c, v := range s.U {
			jumps += (v - last[c]) * (v - last[c])
		}
		copy(last, s.U)
		p.u = append(p.u, s.U...)
		return stages.Observe(s, info)
	})}
	r, err := samplers.Run(ctx, c)
	if err != nil {
		return m, stages, err
	}
	p.Config.Init = r.State.X.Codes
	draws := float64(measuring * len(last))
	return measurement{jumps / draws, time.Since(began).Seconds() / draws}, stages, nil
}
