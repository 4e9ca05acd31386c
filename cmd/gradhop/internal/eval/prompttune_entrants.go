package eval

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"maps"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
)

// seeker is a sampler of the comparison with its settings.
type seeker struct {
	name   string // as given, with its own options
	reg    samplers.Registration
	search task.Search
}

// seekers reads --samplers. Options for all go to the samplers that have them; one that
// none has is an error, as is one of its own that a sampler lacks.
func (o *PromptTuneOptions) seekers() ([]seeker, error) {
	var list []seeker
	unused := maps.Clone(o.Search.Options)
	for _, arg := range o.Samplers {
		name, own, owns := strings.Cut(arg, ":")
		s := seeker{name: arg, search: o.Search}
		s.search.Sampler, s.search.Options, s.search.Chains, s.search.Top = name, samplers.Settings{}, o.Repeats, 1
		var err error
		if s.reg, err = samplers.Lookup(name); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(t seeker) bool { return t.name == arg }) {
			return nil, app.Usagef("--samplers names %s twice", arg)
		}
		batched := false
		for _, f := range s.reg.Flags {
			batched = batched || f.Name == "batch"
			if v, ok := o.Search.Options[f.Name]; ok {
				s.search.Options[f.Name] = v
				delete(unused, f.Name)
			}
		}
		if owns {
			for option := range strings.SplitSeq(own, ":") {
				key, value, given := strings.Cut(option, "=")
				if !given {
					value = "true"
				}
				s.search.Options[key] = value
			}
		}
		if !batched || s.search.Options["batch"] != "" {
			s.search.ImageBatch = 0
		}
		if err := s.search.Try(max(1, len(o.Goal.Models))); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	switch {
	case len(list) == 0:
		return nil, app.Usagef("no sampler: name at least one with --samplers")
	case len(unused) > 0:
		return nil, app.Usagef("none of the samplers has the option --%s", slices.Sorted(maps.Keys(unused))[0])
	}
	return list, nil
}

// check returns an error for settings that no model can make right.
func (o *PromptTuneOptions) check() error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	if o.Repeats < 1 {
		return app.Usagef("--repeats %d: want 1 or more", o.Repeats)
	}
	if len(o.Lengths) == 0 {
		return app.Usagef("no length: name at least one with --lengths")
	}
	for i, n := range o.Lengths {
		if n < 1 {
			return app.Usagef("--lengths %d: want 1 or more", n)
		}
		if slices.Contains(o.Lengths[:i], n) {
			return app.Usagef("--lengths names %d twice", n)
		}
	}
	return nil
}
