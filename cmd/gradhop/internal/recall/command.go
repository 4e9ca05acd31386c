// Package recall keeps in the folder of a run what the run was started with, so that a
// command can go on with it without being told again, and the parts of a split run can be
// joined to one that goes on as well.
package recall

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/onnx/atomicfile"
	"github.com/gradhop/gradhop/samplers/store"
)

// Command is what a run was started with: app.CommandFile in its folder.
type Command struct {
	// Name is that of the command; "" is sample.
	Name string `json:"command,omitempty"`
	// Model is the model's file where it is an argument and not a flag, absolute.
	Model string `json:"model,omitempty"`
	// Flags are those that were given and that draws or results depend on, by name, and
	// Folder the current folder, from which their paths lead.
	Flags  map[string][]string `json:"flags"`
	Folder string              `json:"folder,omitempty"`
	// Picture is the size of the states as pictures, as --picture takes it, or "".
	Picture string `json:"picture,omitempty"`
	// Files are files of the folder that are the same for every part of a split run.
	Files []string `json:"files,omitempty"`
	// Joined are files of lines of the folder, of which a joint run has those of all parts
	// one behind the other; a part may lack them.
	Joined []string `json:"joined,omitempty"`
	// Results says what the command makes of the draws of all chains, where that is more
	// than merging writes; "" where it is not.
	Results string `json:"results,omitempty"`
	// Inside are flags whose paths lead from the run's own folder instead.
	Inside []string `json:"inside,omitempty"`
	// Outputs are flags that name what the command writes besides the folder: a run that
	// is joined from parts does not write to where they did.
	Outputs []string `json:"outputs,omitempty"`
}

// process are flags about a process, not about the run.
var process = map[string]bool{
	"out": true, "resume": true, "continue": true, "checkpoint-every": true, "format": true, "quiet": true, "ort-lib": true, "threads": true,
}

// Paths finds the files that the values of flags name, by the flags' names: given the
// folder from which a path leads.
type Paths map[string]func(folder, value string) string

// Remember takes the flags that were given, and the seed, given or not.
func (c *Command) Remember(flags *pflag.FlagSet, seed uint64) error {
	var err error
	if c.Folder, err = os.Getwd(); err != nil {
		return fmt.Errorf("the current folder is not known: %w", err)
	}
	c.Flags = map[string][]string{}
	flags.Visit(func(f *pflag.Flag) {
		if process[f.Name] {
			return
		}
		c.Flags[f.Name] = []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			c.Flags[f.Name] = s.GetSlice()
		}
	})
	c.Flags["seed"] = []string{strconv.FormatUint(seed, 10)}
	return nil
}

// Write writes the file, whole or not at all. Errors: *store.WriteError.
func (c *Command) Write(dir string) error {
	return store.WriteSealed(dir, app.CommandFile, c)
}

// WriteFile writes a file of a run's folder, whole or not at all. Errors:
// *store.WriteError.
func WriteFile(dir, name string, text []byte) error {
	path := filepath.Join(dir, name)
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return &store.WriteError{Path: path, Err: err}
	}
	return nil
}

// Read returns nil where the folder has no such file: the library made it, or a process
// that was killed in its first moment. Errors: *store.Error.
func Read(dir string) (*Command, error) {
	c := &Command{}
	if err := store.ReadSealed(dir, app.CommandFile, c); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = "sample"
	}
	return c, nil
}

// Resume reads what the run in a folder was started with, by the command of that name,
// and sets the flags that are not given now to it. Where that is not remembered the
// result is nil: all flags but the seed must be given. Errors: *app.Error for a run
// of another command, and those of store.Open.
func Resume(dir, name string, flags *pflag.FlagSet, paths Paths) (*Command, error) {
	c, err := Read(dir)
	if err != nil || c == nil {
		r, e := store.Open(dir) // which may say more
		if e != nil {
			return nil, e
		}
		if err == nil && !flags.Changed("seed") {
			err = flags.Set("seed", strconv.FormatUint(r.Header().Seed, 10))
		}
		return nil, err
	}
	if c.Name != name {
		return nil, app.Usagef("%s is a run of gradhop %s, which goes on with it: gradhop %s --resume %s", dir, c.Name, c.Name, dir)
	}
	// Where the current folder is the same paths stay as they were given, and so does what
	// is printed of them.
	if here, err := os.Getwd(); err == nil && here == c.Folder {
		paths = nil
	}
	for name, values := range c.Flags {
		f := flags.Lookup(name)
		if f == nil {
			return nil, &store.Error{Path: filepath.Join(dir, app.CommandFile), Reason: fmt.Sprintf("flag --%s is not known to this program", name)}
		}
		if f.Changed {
			continue
		}
		for _, v := range values {
			if slices.Contains(c.Inside, name) {
				v = filepath.Join(dir, v)
			} else if full := paths[name]; full != nil {
				v = full(c.Folder, v)
			}
			if err := flags.Set(name, v); err != nil {
				return nil, &store.Error{Path: filepath.Join(dir, app.CommandFile), Reason: "damaged", Err: err}
			}
		}
	}
	return c, nil
}

// Forgotten is the error for a run of which nothing is remembered, where something that
// it needs is not given.
func Forgotten(dir, what string) error {
	return app.Usagef("%s: how the run was begun is not remembered; give %s and all other flags again", dir, what)
}
