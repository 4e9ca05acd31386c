package sample

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/internal/draft"
)

// checkDraft returns an *OptionError for a draft that no model can make right, and reads it.
func (o *Options) checkDraft() (draft.Draft, error) {
	if _, _, err := o.sampler(); err != nil {
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
