package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/samplers"
)

// Complete lists the values that the shell offers for a flag.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	// The only error is a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault))
}

// FormatFlag defines --format, text or json.
func FormatFlag(fs *pflag.FlagSet, format *string) {
	fs.StringVar(format, "format", "text", "of standard output, `text|json`")
}

// CheckFormat returns an error for another value of --format.
func CheckFormat(format string) error {
	if format != "text" && format != "json" {
		return Usagef("--format %q: want text or json", format)
	}
	return nil
}

// samplerOption marks the flags that are options of samplers, with the samplers that take
// them.
const samplerOption = "sampler-option"

// SamplerFlags defines a flag for each option of a registered sampler, whose values go to
// set. A flag that several samplers have is one flag; whether the one in use
// takes it is checked when it is built. An option whose name is a flag of the
// command already is called --sampler-NAME. Help lists these flags in a group of their own.
func SamplerFlags(fs *pflag.FlagSet, set *samplers.Settings) {
	flags, takers := map[string]samplers.Flag{}, map[string][]string{}
	for _, name := range samplers.Names() {
		r, err := samplers.Lookup(name)
		if err != nil {
			continue // Names lists what is registered
		}
		for _, f := range r.Flags {
			flags[f.Name] = f
			takers[f.Name] = append(takers[f.Name], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		shown := name
		if fs.Lookup(name) != nil {
			shown = "sampler-" + name
		}
		f := fs.VarPF(&option{set, flags[name]}, shown, "", flags[name].Doc)
		f.Hidden, f.Annotations = true, map[string][]string{samplerOption: takers[name]}
		if flags[name].Type == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// SamplerUsage is the group of the options of samplers in the help of a command, "" where
// it has none.
func SamplerUsage(cmd *cobra.Command) string {
	lists := map[string][]string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		for _, name := range f.Annotations[samplerOption] {
			lists[name] = append(lists[name], "--"+f.Name)
		}
	})
	if len(lists) == 0 {
		return ""
	}
	text := "\n\nSampler options (gradhop samplers NAME explains them):"
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		text += "\n  " + name + strings.Repeat(" ", max(1, 14-len(name))) + strings.Join(lists[name], " ")
	}
	return text
}

// option is a flag whose value goes to the settings of a sampler.
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
