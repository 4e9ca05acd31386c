// Package eval implements the commands that score samplers by the protocols of papers, models by pairs
// of sentences, and sentences by text metrics.
package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score samplers, models, or a file of sentences, as papers do",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInfill(a), newPairs(a), newPromptTune(a), newText(a))
	return cmd
}

// output holds the flags common to these commands.
type output struct {
	app    *app.App
	format string
	out    string
}

func (o *output) addFlags(cmd *cobra.Command) {
	app.Format(cmd, &o.format, "text", "csv", "json")
	app.OutFlag(cmd.Flags(), &o.out)
}

// table is a result with its formats as rows and as text.
type table struct {
	result any
	rows   func() [][]string
	text   func() string
}

// run opens --out before work is called, and writes the table that work returns, even if it comes with
// an error.
func (o *output) run(work func() (*table, error)) error {
	out, err := o.app.Create(o.out)
	if err != nil {
		return err
	}
	defer out.Discard()
	t, err := work()
	if t == nil {
		return err
	}
	if e := app.Print(out, o.format, t.result, t.rows, t.text); e != nil {
		return e
	}
	if e := out.Commit(); e != nil {
		return e
	}
	return err
}

// entrant is a sampler in a comparison.
type entrant struct {
	name string // as given, with its own options
	reg  samplers.Registration
	set  samplers.Settings
}

// entrants parses --samplers: names, each optionally followed by options after colons, such as
// sgdld:no-cache. Common options go to the samplers that have them; it is an error if no sampler has
// one.
func entrants(names []string, common samplers.Settings) ([]entrant, error) {
	if len(names) == 0 {
		return nil, app.Usagef("no sampler: name at least one with --samplers")
	}
	var list []entrant
	unused := maps.Clone(common)
	for k, arg := range names {
		if slices.Contains(names[:k], arg) {
			return nil, app.Usagef("--samplers names %s twice", arg)
		}
		name, own, hasOwn := strings.Cut(arg, ":")
		reg, err := samplers.Lookup(name)
		if err != nil {
			return nil, err
		}
		e := entrant{arg, reg, samplers.Settings{}}
		for _, f := range reg.Flags {
			if v, ok := common[f.Name]; ok {
				e.set[f.Name] = v
				delete(unused, f.Name)
			}
		}
		if hasOwn {
			for option := range strings.SplitSeq(own, ":") {
				key, value, given := strings.Cut(option, "=")
				if !given {
					value = "true"
				}
				e.set[key] = value
			}
		}
		list = append(list, e)
	}
	if len(unused) > 0 {
		return nil, app.Usagef("none of the samplers has the option --%s", slices.Sorted(maps.Keys(unused))[0])
	}
	return list, nil
}

// refsFlags defines --refs and --mix.
func refsFlags(cmd *cobra.Command, refs *[]string, mix *int, most int, what string) {
	cmd.Flags().StringArrayVar(refs, "refs", nil, "`file` of reference sentences, one per line; may be repeated")
	app.Int(cmd.Flags(), mix, "mix", most, 0, "with several references, "+what+" the first `n` sentences of each together; 0 for all")
}

// checkRefs returns an error if there are no references.
func checkRefs(refs []string) error {
	if len(refs) == 0 {
		return app.Usagef("no references: give at least one file with --refs")
	}
	return nil
}
