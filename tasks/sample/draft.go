package sample

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// twoStage is the name of the sampler that uses a draft.
const twoStage = "two-stage"

// draft is what the option names: one of the fields is set, or none.
type draft struct {
	// provider is the name in full of the provider on which the model itself is the draft.
	provider string
	// model is the file of another model.
	model string
}

// on returns the options of the runtime for a draft that is the model itself on another provider.
func (d draft) on(o ort.Options) ort.Options {
	o.Provider, o.Advice = d.provider, "name another draft"
	return o
}

// short are names for the providers that serve as drafts most often.
var short = map[string]string{"bf16": "openvino:cpu,bf16", "int8": "cpu,int8"}

// parseDraft reads a draft: "int8", "bf16", a provider, or else the name of a model; "" is none. o has the
// model's own provider, which cannot be the draft. The error is to follow the name of the option.
func parseDraft(text string, o ort.Options) (draft, error) {
	if text == "" {
		return draft{}, nil
	}
	name := text
	if full, ok := short[text]; ok {
		name = full
	}
	kind, _, _ := strings.Cut(name, ",")
	kind, _, _ = strings.Cut(kind, ":")
	if !slices.Contains([]string{"cpu", "cuda", "openvino"}, kind) {
		return draft{model: text}, nil
	}
	main := ort.ProviderName(o.Provider)
	o.Provider = name
	if bad := (*onnx.ArgumentError)(nil); errors.As(ort.CheckProvider(o), &bad) {
		return draft{}, errors.New(bad.Reason)
	}
	if d := (draft{provider: ort.ProviderName(name)}); d.provider != main {
		return d, nil
	}
	return draft{}, fmt.Errorf("the model itself runs on %s", main)
}

// checkDraft returns an *OptionError for a draft that no model can make right, and reads it.
func (o *Options) checkDraft() (draft, error) {
	if _, _, err := o.sampler(); err != nil {
		return draft{}, err
	}
	if len(o.Terms) > 0 { // each term has its own
		return draft{}, nil
	}
	runtime := o.Runtime
	runtime.Provider = o.Provider
	d, err := parseDraft(o.Draft, runtime)
	switch {
	case err != nil:
		return d, &OptionError{"draft", o.Draft, err.Error()}
	case d.model != "" && !strings.HasSuffix(d.model, ".onnx"):
		return d, &OptionError{"draft", o.Draft, "want a provider, as openvino,bf16, or a file that ends in .onnx"}
	case o.Draft != "" && o.Energy != "":
		return d, &OptionError{"draft", o.Draft, "an energy of known form has none"}
	}
	return d, nil
}

// sampler returns the name of the sampler and its options: with a draft, those of the two-stage sampler
// around the one that is asked for.
func (o *Options) sampler() (string, samplers.Settings, error) {
	switch {
	case o.Draft == "" && o.Sampler == twoStage:
		return "", nil, &OptionError{"sampler", o.Sampler, "it needs a draft"}
	case o.Draft == "" || o.Sampler == twoStage:
		return o.Sampler, o.Settings, nil
	}
	set := samplers.Settings{"inner": o.Sampler}
	maps.Copy(set, o.Settings)
	return twoStage, set, nil
}

// openDraft opens the draft of the model m, which mo describes, and joins it to the energy.
func (p *plan) openDraft(m *onnx.Model, mo neural.ModelOptions) error {
	d, err := p.o.checkDraft()
	if err != nil {
		return err
	}
	if mo.Runtime.Provider = p.o.Provider; d.model != "" {
		if m, err = onnx.Load(d.model); err != nil {
			return err
		}
		digest, err := onnx.Digest(m)
		if err != nil {
			return err
		}
		p.header.Settings["draft"] = filepath.Base(d.model) + " sha256:" + digest
	} else {
		mo.Runtime, p.header.Settings["draft"] = d.on(mo.Runtime), d.provider
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
