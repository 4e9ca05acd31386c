package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
)

type flagSet = *pflag.FlagSet

// command is what a run was started with, in its folder (app.CommandFile), so that it
// can be resumed without naming flags again.
type command struct {
	Model string              `json:"model"` // absolute
	Flags map[string][]string `json:"flags"`
	// Picture is the size of the states as pictures, as --picture takes it, or empty.
	Picture string `json:"picture,omitempty"`
}

// notRecalled are flags about a process, not about the run.
var notRecalled = map[string]bool{
	"out": true, "resume": true, "continue": true, "checkpoint-every": true, "format": true, "quiet": true, "ort-lib": true, "threads": true, "seed": true,
}

// files are flags whose value is a path, or may be.
var files = map[string]bool{"allow": true, "init": true, "feed": true}

// remember writes what the run was started with into its folder.
func (o *Options) remember(dir string, flags flagSet, picture string) error {
	c := command{Flags: map[string][]string{}, Picture: picture}
	var err error
	if c.Model, err = filepath.Abs(o.Model); err != nil {
		return err
	}
	flags.Visit(func(f *pflag.Flag) {
		if notRecalled[f.Name] {
			return
		}
		list := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			list = s.GetSlice()
		}
		if files[f.Name] {
			for i := range list {
				list[i] = absolute(list[i])
			}
		}
		c.Flags[f.Name] = list
	})
	c.Flags["seed"] = []string{fmt.Sprint(o.Seed)}
	return c.write(dir)
}

func (c *command) write(dir string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, app.CommandFile)
	if err := os.WriteFile(path+".tmp", append(text, '\n'), 0o644); err != nil {
		return &store.WriteError{Path: path, Err: err}
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return &store.WriteError{Path: path, Err: err}
	}
	return nil
}

// readCommand returns nil where the folder has none: the library made it.
func readCommand(dir string) (*command, error) {
	path := filepath.Join(dir, app.CommandFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &store.FormatError{Path: path, Reason: "cannot be read", Err: err}
	}
	c := &command{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, &store.FormatError{Path: path, Reason: "damaged", Err: err}
	}
	return c, nil
}

// begun reports whether a folder holds a run that can be resumed by its flags.
func begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, app.CommandFile))
	return err == nil
}

// PictureOf returns the size that states of a run have as pictures, as --picture takes
// it, or "".
func PictureOf(dir string) (string, error) {
	c, err := readCommand(dir)
	if c == nil || err != nil {
		return "", err
	}
	return c.Picture, nil
}

// Join gives the folder of a merged run what its parts, such as from, were started with,
// so that it can be resumed.
func Join(to, from string, ids []int64) error {
	c, err := readCommand(from)
	if c == nil || err != nil {
		return err
	}
	list := make([]string, len(ids))
	first := true // chains 0…n-1
	for i, id := range ids {
		list[i] = fmt.Sprint(id)
		first = first && id == int64(i)
	}
	delete(c.Flags, "chain-ids")
	if first {
		c.Flags["chains"] = []string{fmt.Sprint(len(ids))}
	} else {
		c.Flags["chain-ids"] = []string{strings.Join(list, ",")}
	}
	return c.write(to)
}

// absolute makes the file in a flag's value, FILE or NAME=FILE, independent of the
// current folder. Words such as "random" name no file.
func absolute(value string) string {
	name, path, ok := strings.Cut(value, "=")
	if !ok {
		name, path = "", value
	} else {
		name += "="
	}
	if _, err := os.Stat(path); err != nil {
		return value
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return value
	}
	return name + full
}

// recall sets the flags that are not given to what the run in o.Resume was started
// with.
func (o *Options) recall(flags flagSet, modelGiven bool) error {
	c, err := readCommand(o.Resume)
	if err != nil {
		if _, e := store.Open(o.Resume); e != nil { // which says more
			err = e
		}
		return err
	}
	if c == nil { // made by the library: all flags must be given
		_, err := store.Open(o.Resume)
		return err
	}
	if !modelGiven {
		o.Model = c.Model
	}
	for name, values := range c.Flags {
		f := flags.Lookup(name)
		if f == nil {
			return &store.FormatError{Path: filepath.Join(o.Resume, app.CommandFile), Reason: fmt.Sprintf("flag --%s is not known to this program", name)}
		}
		if f.Changed {
			continue
		}
		for _, v := range values {
			if err := flags.Set(name, v); err != nil {
				return &store.FormatError{Path: filepath.Join(o.Resume, app.CommandFile), Reason: "damaged", Err: err}
			}
		}
	}
	return nil
}
