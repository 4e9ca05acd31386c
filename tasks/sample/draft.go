package sample

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/internal/draft"
)

// checkDraft returns an *OptionError for a draft that no model can make right, and reads it.
func (o *Options) checkDraft() (draft.Draft, error) {
	if _, _, err := o.sampler(); err != nil || o.Draft == draft.Auto {
		return draft.Draft{}, err
	}
	if len(o.Terms) > 0 { // each term has its own
		return draft.Draft{}, nil
	}
	runtime := o.Runtime
	runtime.Provider = o.Provider
	d, err := draft.Parse(o.Draft, runtime)
	switch {
	case err != nil:
		return d, &OptionError{"draft", o.Draft, err.Error()}
	case d.Model != "" && !strings.HasSuffix(d.Model, ".onnx"):
		return d, &OptionError{"draft", o.Draft, "want a provider, as openvino,bf16, or a file that ends in .onnx"}
	case o.Draft != "" && o.Energy != "":
		return d, &OptionError{"draft", o.Draft, "an energy of known form has none"}
	}
	return d, nil
}

// sampler returns the name of the sampler and its options: with a draft, those of the sampler
// around the one that is asked for.
func (o *Options) sampler() (string, samplers.Settings, error) {
	name, set, err := draft.Sampler(o.Draft, o.Sampler, o.Settings)
	if err != nil {
		return "", nil, &OptionError{"sampler", o.Sampler, err.Error()}
	}
	return name, set, nil
}

// chooseDraft replaces "auto" by what measurements say, or by what they said when the run to continue
// was started.
func (o *Options) chooseDraft(ctx context.Context) error {
	switch {
	case !draft.IsAuto(o.Draft, o.Settings):
		return nil
	case o.Resume != "":
		saved, err := Load(o.Resume)
		if err == nil {
			o.Draft, o.Settings = saved.Draft, saved.Settings
		}
		return err
	case o.Sampler == draft.TwoStage:
		return &OptionError{"sampler", o.Sampler, "name the sampler that moves on the draft instead"}
	case o.Draft == "":
		return &OptionError{"draft-steps", draft.Auto, "it needs a draft"}
	}
	open := map[string]*plan{}
	defer func() {
		for _, p := range open {
			p.close()
		}
	}()
	with := func(ctx context.Context, name string) (*plan, error) {
		if p := open[name]; p != nil {
			return p, nil
		}
		c := *o
		c.Draft, c.Settings, c.Log = name, maps.Clone(o.Settings), nil
		delete(c.Settings, "draft-steps")
		p, err := c.plan(ctx)
		if err == nil {
			open[name] = p
		}
		return p, err
	}
	plain, err := with(ctx, "")
	if err != nil {
		return err
	}
	pilot := draft.Pilot{Sampler: o.Sampler, Settings: o.Settings, Config: plain.config, Log: o.log,
		Energy: func(ctx context.Context, name string, _ samplers.Registration, _ samplers.Settings) (energies.Energy, error) {
			p, err := with(ctx, name)
			if err != nil {
				return nil, err
			}
			return p.energy, nil
		}}
	runtime := o.Runtime
	runtime.Provider = o.Provider
	o.Draft, o.Settings, err = pilot.Choose(ctx, o.Draft, runtime)
	return err
}

// openDraft opens the draft of the model m, which mo describes, and joins it to the energy.
func (p *plan) openDraft(m *onnx.Model, mo neural.ModelOptions) error {
	d, err := p.o.checkDraft()
	if err != nil {
		return err
	}
	if mo.Runtime.Provider = p.o.Provider; d.Model != "" {
		if m, err = onnx.Load(d.Model); err != nil {
			return err
		}
		digest, err := onnx.Digest(m)
		if err != nil {
			return err
		}
		p.header.Settings["draft"] = filepath.Base(d.Model) + " sha256:" + digest
	} else {
		mo.Runtime, p.header.Settings["draft"] = d.On(mo.Runtime), d.Provider
	}
	if p.draft, err = neural.NewModel(m, mo); err != nil {
		return fmt.Errorf("draft %s: %w", p.o.Draft, explain(err))
	}
	p.draftEnergy = p.draft
	return nil
}

// watchDraft reports a draft whose moves the model nearly always rejects, at the end of warm-up,
// and sums up both stages at the end of the run.
func (p *plan) watchDraft() samplers.Observer {
	var stages samplers.Stages
	return samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		err := stages.Observe(s, info)
		warmed, ended := s.Step == int64(p.o.Warmup), s.Step == int64(p.o.Warmup+p.o.Steps)
		if ended || warmed && stages.Useless() {
			first, second := stages.Rejected()
			if line := samplers.DescribeStages(p.o.Draft, first, second); line != "" {
				p.o.log(line)
			}
		}
		if warmed {
			stages = samplers.Stages{}
		}
		return err
	})
}
