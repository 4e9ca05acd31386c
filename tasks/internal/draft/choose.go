package draft

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
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
	Energy func(ctx context.Context, draft string, r samplers.Registration, set samplers.Settings) (energies.Oracle, error)
	// Config has the chains, Init and the seed of the run. Warmup steps come before the
	// measurements: from where they lead, every candidate is measured.
	Config samplers.Config
	// Log takes a line for each measurement.
	Log func(line string)

	measured uint64 // measurements so far
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
// The measure is the effective number of draws of U in a second by the clock, not of processor time:
// users wait by the clock, and an int8 draft keeps one core busy where the model in float32 uses all.
// The choice depends on the machine and on what else it does, so a run records it.
func (p *Pilot) Choose(ctx context.Context, draft string, o ort.Options) (string, samplers.Settings, error) {
	drafts, best, chosen, steps := []string{draft}, 0.0, draft, 0
	if draft == Auto {
		drafts, chosen = Candidates(ctx, o), ""
		rate, err := p.measure(ctx, "", 0)
		if err != nil {
			return "", nil, err
		}
		best = gain * rate
	}
	for _, name := range drafts {
		k, rate, err := p.tune(ctx, name)
		missing := (*ort.UnavailableError)(nil)
		if draft == Auto && errors.As(err, &missing) && ctx.Err() == nil {
			p.Log(fmt.Sprintf("draft %s: %v", name, err))
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if rate > best || steps == 0 && draft != Auto {
			best, chosen, steps = rate, name, k
		}
	}
	set := maps.Clone(p.Settings)
	if set == nil {
		set = samplers.Settings{}
	}
	delete(set, stepsOption)
	flags := "no --draft"
	if chosen != "" {
		set[stepsOption] = strconv.Itoa(steps)
		flags = fmt.Sprintf("--draft %s --draft-steps %d", chosen, steps)
	}
	p.Log(fmt.Sprintf("%s is the best measured; with it and --seed %d the run is repeated", flags, p.Config.Seed))
	return chosen, set, nil
}

// tune returns the best number of steps on a draft, and its rate.
func (p *Pilot) tune(ctx context.Context, draft string) (steps int, best float64, err error) {
	if text := p.Settings[stepsOption]; text != "" && text != Auto {
		steps, err = strconv.Atoi(text)
		if err == nil {
			best, err = p.measure(ctx, draft, steps)
		}
		return steps, best, err
	}
	for k := 1; k <= 64; k *= 2 {
		rate, err := p.measure(ctx, draft, k)
		if err != nil {
			return 0, 0, err
		}
		if steps > 0 && rate <= best {
			break
		}
		steps, best = k, rate
	}
	return steps, best, nil
}

// measure returns the effective draws of U in a second with k steps on a draft, 0 where the chains
// do not move.
func (p *Pilot) measure(ctx context.Context, draft string, k int) (float64, error) {
	set := maps.Clone(p.Settings)
	if set == nil {
		set = samplers.Settings{}
	}
	if delete(set, stepsOption); draft != "" {
		set[stepsOption] = strconv.Itoa(k)
	}
	name, set, err := Sampler(draft, p.Sampler, set)
	if err != nil {
		return 0, err
	}
	reg, err := samplers.Lookup(name)
	if err != nil {
		return 0, err
	}
	energy, err := p.Energy(ctx, draft, reg, set)
	if err != nil {
		return 0, err
	}
	c := p.Config
	if c.Kernel, err = reg.New(energy, set); err != nil {
		return 0, err
	}
	p.measured++
	c.Thin, c.Steps, c.Seed = 1, measuring, c.Seed+p.measured<<32 // no random number is used twice
	if p.Config.Warmup > 0 {                                      // the first measurement, without a draft or with one
		p.Config.Warmup = 0
	} else {
		c.Warmup = tuning
	}
	rate, stages, err := p.run(ctx, c)
	if err != nil {
		return 0, err
	}
	first, second := stages.Rejected()
	line := samplers.DescribeStages(draft, first, second)
	if draft == "" {
		p.Log(fmt.Sprintf("no draft: %.3g effective draws of U a second", rate))
	} else {
		p.Log(fmt.Sprintf("%d draft steps: %.3g effective draws of U a second; %s", k, rate, line))
	}
	return rate, nil
}

// run makes the steps of a measurement and keeps where they lead.
func (p *Pilot) run(ctx context.Context, c samplers.Config) (rate float64, stages samplers.Stages, err error) {
	var u [][]float64
	var began time.Time
	c.Observers = []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		if !info.Keep {
			began = time.Now()
			return nil
		}
		for c, v := range s.U {
			if c == len(u) {
				u = append(u, nil)
			}
			u[c] = append(u[c], v)
		}
		return stages.Observe(s, info)
	})}
	r, err := samplers.Run(ctx, c)
	if err != nil {
		return 0, stages, err
	}
	p.Config.Init = r.State.X.Codes
	if n := diag.ESSBulk(u); n > 0 { // not NaN, of chains that do not move
		rate = n / time.Since(began).Seconds()
	}
	return rate, stages, nil
}
