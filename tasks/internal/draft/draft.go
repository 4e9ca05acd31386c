// Package draft reads the option by which a task runs two-stage samplers: a draft, which is a cheap
// stand-in for the model. See the sampler two-stage.
package draft

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// twoStage is the name of the sampler that uses a draft.
const twoStage = "two-stage"

// Draft is what the option names: one of the fields is set, or none.
type Draft struct {
	// Provider is the name in full of the provider on which the model itself is the draft.
	Provider string
	// Model names another model, in the way of the task.
	Model string
}

// On returns the options of the runtime for a draft that is the model itself on another provider.
func (d Draft) On(o ort.Options) ort.Options {
	o.Provider, o.Advice = d.Provider, "name another draft"
	return o
}

// short are names for the providers that serve as drafts most often.
var short = map[string]string{"bf16": "openvino:cpu,bf16", "int8": "cpu,int8"}

// Parse reads a draft: "int8", "bf16", a provider, or else the name of a model; "" is none. o has the
// model's own provider, which cannot be the draft. The error is to follow the name of the option.
func Parse(text string, o ort.Options) (Draft, error) {
	if text == "" {
		return Draft{}, nil
	}
	name := text
	if full, ok := short[text]; ok {
		name = full
	}
	kind, _, _ := strings.Cut(name, ",")
	kind, _, _ = strings.Cut(kind, ":")
	if !slices.Contains([]string{"cpu", "cuda", "openvino"}, kind) {
		return Draft{Model: text}, nil
	}
	main := ort.ProviderName(o.Provider)
	o.Provider = name
	if bad := (*onnx.ArgumentError)(nil); errors.As(ort.CheckProvider(o), &bad) {
		return Draft{}, errors.New(bad.Reason)
	}
	if d := (Draft{Provider: ort.ProviderName(name)}); d.Provider != main {
		return d, nil
	}
	return Draft{}, fmt.Errorf("the model itself runs on %s", main)
}

// Sampler returns the name and the settings of the sampler to run: with a draft, those of the
// two-stage sampler around the one that is asked for. The error is to follow the name of the sampler.
func Sampler(draft, name string, set samplers.Settings) (string, samplers.Settings, error) {
	switch {
	case draft == "" && name == twoStage:
		return "", nil, errors.New("it needs a draft")
	case draft == "" || name == twoStage:
		return name, set, nil
	}
	all := samplers.Settings{"inner": name}
	maps.Copy(all, set)
	return twoStage, all, nil
}

// Versions are those of the runtime and of the plug-ins that the providers of a run come from.
func Versions(o ort.Options, providers ...string) map[string]string {
	v := map[string]string{"onnxruntime": ort.Version()}
	for _, provider := range providers {
		if o.Provider = provider; ort.PluginVersion(o) != "" {
			v["openvino"] = ort.PluginVersion(o)
		}
	}
	return v
}
