package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// entrant is a sampler with its settings.
type entrant struct {
	name   string // as given
	chains run.Chains
	reg    samplers.Registration
}

// entrants checks the settings and gives each sampler those options that it has. An
// option that none of them has is an error, as one that a single sampler lacks is.
func (o *InfillOptions) entrants() ([]entrant, error) {
	if len(o.Samplers) == 0 {
		return nil, app.Usagef("no sampler: name at least one with --samplers")
	}
	var list []entrant
	seen := map[string]string{}
	unused := maps.Clone(o.Chains.Options)
	for _, name := range o.Samplers {
		e := entrant{name: name, chains: o.Chains}
		e.chains.Sampler = name
		e.chains.Options = samplers.Settings{}
		var err error
		if e.reg, err = e.chains.Registration(); err != nil {
			return nil, err
		}
		if first, twice := seen[e.reg.Name]; twice {
			if first == name {
				return nil, app.Usagef("--samplers names %s twice", name)
			}
			return nil, app.Usagef("--samplers: %s and %s are the same here", first, name)
		}
		seen[e.reg.Name] = name
		for _, f := range e.reg.Flags {
			if v, ok := o.Chains.Options[f.Name]; ok {
				e.chains.Options[f.Name] = v
				delete(unused, f.Name)
			}
		}
		if err := e.chains.Check(); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if len(unused) > 0 {
		return nil, app.Usagef("none of the samplers has the option --%s", slices.Sorted(maps.Keys(unused))[0])
	}
	return list, nil
}

// contest is everything about a run that is known before a model is loaded.
type contest struct {
	entrants []entrant
	items    []Item
	refs     []textmetrics.Refs
	metrics  textmetrics.Options
	results  Results // with no sampler yet
}

// prepare checks the settings and reads the files that they name.
func (o *InfillOptions) prepare() (*contest, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &contest{}
	var err error
	if c.entrants, err = o.entrants(); err != nil {
		return nil, err
	}
	var data []byte
	if c.items, data, err = ReadTask(o.Task); err != nil {
		return nil, err
	}
	var removed []int
	if c.refs, removed, err = o.references(c.items); err != nil {
		return nil, err
	}
	if c.metrics, err = mixing(o.Mix, c.refs); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	c.results = Results{
		Gradhop: app.Version(), Seed: o.Chains.Seed, Task: Task{o.Task, hex.EncodeToString(sum[:]), len(c.items)},
		MixPerRef: o.Mix, Keep: o.Keep, Samplers: []Scored{},
	}
	for k, ref := range c.refs {
		c.results.References = append(c.results.References, Reference{ref.Name, len(ref.Sentences), removed[k]})
	}
	return c, nil
}

// references reads the reference files and leaves the task's sentences out.
func (o *InfillOptions) references(items []Item) (refs []textmetrics.Refs, removed []int, err error) {
	refs, err = readRefs(o.Refs)
	if err != nil || o.Originals {
		return refs, make([]int, len(refs)), err
	}
	left, removed, err := removeOriginals(refs, items)
	if err != nil {
		return nil, nil, app.Usagef("a reference file has no sentence but those of the task: %w", err)
	}
	return left, removed, nil
}

// check returns an error for settings that no model and no file can make right.
func (o *InfillOptions) check() error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	switch {
	case o.Task == "":
		return app.Usagef("no task: give a file with --task")
	case o.Chains.Top < 1:
		return app.Usagef("--top %d: want 1 or more", o.Chains.Top)
	case o.Keep != KeepLast && o.Keep != KeepVisited:
		return app.Usagef("--keep %q: want last or visited", o.Keep)
	}
	return nil
}

// InterruptedError reports a run that ended early, with what was finished printed. It
// wraps the context's error, or the one that ended the run.
type InterruptedError struct {
	Finished, Of int
	What         string // they count, "samplers" or "searches"
	Err          error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%d of %d %s finished: %v", e.Finished, e.Of, e.What, e.Err)
}

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

// early wraps the error of an unfinished run; nil stays nil.
func early(finished, of int, err error) error {
	if err == nil || finished == 0 {
		return err
	}
	var done *InterruptedError
	if errors.As(err, &done) {
		return err
	}
	return &InterruptedError{finished, of, "samplers", err}
}
