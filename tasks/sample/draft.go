package sample

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// checkDraft returns an *OptionError for a draft that no model can make right.
func (o *Options) checkDraft() error {
	provider := o.Runtime
	provider.Provider = o.Draft
	switch bad := (*onnx.ArgumentError)(nil); {
	case o.Draft == "" && o.Sampler == twoStage:
		return &OptionError{"sampler", o.Sampler, "it needs --draft"}
	case o.Draft == "" || strings.HasSuffix(o.Draft, ".onnx"):
	case errors.As(ort.CheckProvider(provider), &bad):
		return &OptionError{"draft", o.Draft, "want a file that ends in .onnx, or a provider: " + strings.TrimPrefix(bad.Reason, "want ")}
	case ort.ProviderName(o.Draft) == ort.ProviderName(o.Provider):
		return &OptionError{"draft", o.Draft, "the model itself runs there"}
	}
	if o.Draft != "" && o.Energy != "" {
		return &OptionError{"draft", o.Draft, "an energy of known form has none"}
	}
	return nil
}

const twoStage = "two-stage"

// sampler returns the name of the sampler and its options: with a draft, those of the sampler
// around the one that is asked for.
func (o *Options) sampler() (string, samplers.Settings) {
	if o.Draft == "" || o.Sampler == twoStage {
		return o.Sampler, o.Settings
	}
	set := samplers.Settings{"inner": o.Sampler}
	maps.Copy(set, o.Settings)
	return twoStage, set
}

// openDraft opens the draft of the model m, which mo describes, and joins it to the energy.
func (p *plan) openDraft(m *onnx.Model, mo neural.ModelOptions) error {
	o, err := p.o, error(nil)
	if strings.HasSuffix(o.Draft, ".onnx") {
		if m, err = onnx.Load(o.Draft); err != nil {
			return err
		}
		digest, err := onnx.Digest(m)
		if err != nil {
			return err
		}
		p.header.Settings["draft"] = filepath.Base(o.Draft) + " sha256:" + digest
	} else {
		mo.Runtime.Provider = o.Draft
		p.header.Settings["draft"] = ort.ProviderName(o.Draft)
	}
	if p.draft, err = neural.NewModel(m, mo); err != nil {
		return explain(err)
	}
	p.energy, err = energies.WithDraft(p.model, p.draft)
	return err
}

// versions are those of what the run computes with.
func (p *plan) versions() map[string]string {
	v := map[string]string{"onnxruntime": ort.Version()}
	for _, provider := range []string{p.o.Provider, p.o.Draft} {
		o := p.o.Runtime
		if o.Provider = provider; ort.PluginVersion(o) != "" {
			v["openvino"] = ort.PluginVersion(o)
		}
	}
	return v
}

// useless is the acceptance of the second stage below which a draft is reported.
const useless = 0.01

// watchDraft reports a draft whose moves the model nearly always rejects, at the end of warm-up,
// and sums up both stages at the end of the run.
func (p *plan) watchDraft() samplers.Observer {
	var moved, accepted, passed, steps float64
	return samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		for c, a := range s.Var(samplers.DraftAcceptanceVar) {
			passed, steps = passed+a, steps+1
			if info.Hops[c] > 0 || !info.Accepted[c] {
				moved, accepted = moved+1, accepted+info.Accept[c]
			}
		}
		warmed, ended := s.Step == int64(p.o.Warmup), s.Step == int64(p.o.Warmup+p.o.Steps)
		if moved == 0 || !warmed && !ended {
			return nil
		}
		if rate := accepted / moved; warmed && rate < useless {
			p.o.log(fmt.Sprintf("draft %s: the model rejects %.1f%% of its moves in warm-up; the run is exact, and faster without --draft", p.o.Draft, 100*(1-rate)))
		} else if ended {
			p.o.log(fmt.Sprintf("draft %s: acceptance %.1f%% on the draft, then %.1f%% by the model", p.o.Draft, 100*passed/steps, 100*rate))
		}
		if warmed {
			moved, accepted, passed, steps = 0, 0, 0, 0
		}
		return nil
	})
}
