package app

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// Complete lists the values that the shell offers for a flag.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	// The only error is a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault))
}

// CompleteModels lists the models that the shell offers for --model, besides folders.
func CompleteModels(cmd *cobra.Command, names []string) {
	_ = cmd.RegisterFlagCompletionFunc("model", cobra.FixedCompletions(names, cobra.ShellCompDirectiveFilterDirs))
}

// SamplerFlag defines --sampler, whose default is *name.
func SamplerFlag(cmd *cobra.Command, name *string, what string) {
	cmd.Flags().StringVar(name, "sampler", *name, "`name` of the "+what+"; gradhop samplers lists them")
	Complete(cmd, "sampler", samplers.Names()...)
}

// Int defines a flag for a number that is at least least.
func Int(fs *pflag.FlagSet, n *int, name string, value, least int, usage string) {
	*n = value
	fs.Var(&integer{n, least}, name, usage)
}

// integer is the value of such a flag.
type integer struct {
	n     *int
	least int
}

// Set implements pflag.Value.
func (i *integer) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if n < i.least {
		return fmt.Errorf("want %d or more", i.least)
	}
	*i.n = n
	return nil
}

// String implements pflag.Value.
func (i *integer) String() string {
	if i.n == nil {
		return "0"
	}
	return strconv.Itoa(*i.n)
}

// Type implements pflag.Value.
func (*integer) Type() string { return "int" }

// Args wants one argument and names what it is in the error, as "one model".
func Args(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%d arguments; want %s", len(args), what)
		}
		return nil
	}
}

// NoArgs wants no argument, and says in the error what takes its place.
func NoArgs(instead string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usagef("argument %q: %s", args[0], instead)
		}
		return nil
	}
}

// OutFlag defines --out of a command that writes to standard output otherwise.
func OutFlag(fs *pflag.FlagSet, out *string) {
	fs.StringVarP(out, "out", "o", "", "`file` to write to, which appears when it is complete (default: standard output)")
}

// SeedFlag defines --seed of a command that draws a seed otherwise: see Seed.
func SeedFlag(fs *pflag.FlagSet, seed *uint64) {
	fs.Uint64Var(seed, "seed", 0, "`number` that determines all random numbers (default: a random one, which is recorded)")
}

// Seed sets the seed of a run that was given none to a random one, short enough to be typed
// again.
func Seed(fs *pflag.FlagSet, seed *uint64) {
	if fs.Changed("seed") {
		return
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	*seed = uint64(binary.LittleEndian.Uint32(b[:]))
}

// Recall calls load, which reads the options of the run in a folder into what flags set;
// flags that are given now replace them. Of a run without options it recalls the seed only,
// and the result is false.
func Recall(fs *pflag.FlagSet, dir string, seed *uint64, load func() error) (known bool, err error) {
	err = reapply(fs, load)
	if !errors.Is(err, os.ErrNotExist) || !store.Begun(dir) {
		return true, err
	}
	r, err := store.Open(dir)
	if err == nil && !fs.Changed("seed") {
		*seed = r.Header().Seed
	}
	return false, err
}

// reapply calls load, which overwrites what flags set, and sets those again that are given.
func reapply(fs *pflag.FlagSet, load func() error) error {
	type given struct {
		flag *pflag.Flag
		text string
		list []string
	}
	var all []given
	fs.Visit(func(f *pflag.Flag) {
		g := given{flag: f, text: f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			g.list = list.GetSlice()
		}
		all = append(all, g)
	})
	err := load()
	for _, g := range all {
		if list, ok := g.flag.Value.(pflag.SliceValue); ok {
			err = cmp.Or(err, list.Replace(g.list))
		} else {
			err = cmp.Or(err, g.flag.Value.Set(g.text))
		}
	}
	return err
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
		if r, err := samplers.Lookup(name); err != nil || strings.HasPrefix(r.Bias, "none") && cmd.Name() != "prompt-tune" {
			continue // an optimiser of prompts
		}
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
