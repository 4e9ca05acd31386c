package run

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// AddSamplerFlags defines the flags of all registered samplers, whose values go to
// set. A flag that several have is one flag; which of them takes it is checked when
// the sampler is built.
func AddSamplerFlags(fs *pflag.FlagSet, set *samplers.Settings) {
	type use struct {
		flag     samplers.Flag
		samplers []string
	}
	uses := map[string]*use{}
	for _, name := range samplers.Names() {
		r, err := samplers.Lookup(name)
		if err != nil {
			continue
		}
		for _, f := range r.Flags {
			if uses[f.Name] == nil {
				uses[f.Name] = &use{flag: f}
			}
			uses[f.Name].samplers = append(uses[f.Name].samplers, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		u := uses[name]
		doc := u.flag.Doc
		if len(u.flag.Choices) > 0 {
			doc += ": " + strings.Join(u.flag.Choices, " or ")
		}
		f := fs.VarPF(&option{set, u.flag}, name, "", doc+" ("+strings.Join(u.samplers, ", ")+")")
		if u.flag.Type == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// option is a flag whose value goes to the settings.
type option struct {
	set  *samplers.Settings
	flag samplers.Flag
}

// Set implements pflag.Value.
func (o *option) Set(text string) error {
	if *o.set == nil {
		*o.set = samplers.Settings{}
	}
	(*o.set)[o.flag.Name] = text
	return nil
}

// String implements pflag.Value.
func (o *option) String() string {
	if o.set == nil {
		return ""
	}
	return (*o.set)[o.flag.Name]
}

// Type implements pflag.Value.
func (o *option) Type() string { return strings.TrimSuffix(o.flag.Type, "64") }

// kernel builds the sampler for an energy.
func (c *Chains) kernel(e energies.Energy) (samplers.Kernel, error) {
	r, err := c.Registration()
	if err != nil {
		return nil, err
	}
	return r.New(e, c.Options)
}
