package prompttune

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/onnx/atomicfile"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/tasks/internal/record"
)

// command is the name of the task in the record of a run.
const command = "prompt-tune"

// recorded is the part of a Config that is kept in the folder of a run.
type recorded struct {
	Goal     Goal   `json:"goal"`
	Form     Form   `json:"form"`
	Search   Search `json:"search"`
	Provider string `json:"provider"`
	// Page is the file of Config.Page; Inside says that it is in the folder of the run, and
	// Page its name there.
	Page   string `json:"page,omitempty"`
	Inside bool   `json:"page_inside,omitempty"`
}

// save writes the options into the folder of the run. beta is the schedule with the step at
// which a range ends: steps that are made keep their temperature when the run is made
// longer.
func (o *Config) save(beta string) error {
	r := recorded{Goal: o.Goal, Form: o.Form, Search: o.Search, Provider: o.Goal.Runtime.Provider, Page: o.Page}
	if beta != "" {
		r.Search.Beta = beta
	}
	switch r.Inside = o.PageInside(); {
	case r.Inside:
		r.Page = filepath.Base(o.Page)
	case r.Page != "":
		var err error
		if r.Page, err = filepath.Abs(o.Page); err != nil {
			return err
		}
	}
	return record.Save(o.folder(), command, r)
}

// PageInside reports whether the page is in the folder of the run.
func (o *Config) PageInside() bool {
	dir := o.folder()
	return o.Page != "" && dir != "" && filepath.Clean(filepath.Dir(o.Page)) == filepath.Clean(dir)
}

// Saved reads what the run in a folder was begun with, to continue it: Goal, Form, Search,
// Page and Resume are set. Paths of files lead from the present folder. Errors: *store.Error,
// one that matches fs.ErrNotExist where the run has no options because a process was killed
// at once; *onnx.ArgumentError for the run of another task.
func Saved(dir string) (Config, error) {
	var r recorded
	name, moved, err := record.Load(dir, &r)
	if err != nil {
		return Config{}, err
	}
	if name != command {
		return Config{}, badInput("resume", "%s is a run of gradhop %s, which continues it: gradhop %s --resume %s", dir, name, name, dir)
	}
	c := Config{Goal: r.Goal, Form: r.Form, Search: r.Search, Page: r.Page, Resume: dir}
	c.Goal.Runtime.Provider = r.Provider
	weighted := func(arg string) string { // NAME or NAME:WEIGHT
		if full := moved(arg); full != arg {
			return full
		}
		if i := strings.LastIndexByte(arg, ':'); i >= 0 {
			return moved(arg[:i]) + arg[i:]
		}
		return arg
	}
	for _, list := range []struct {
		args  []string
		moved func(string) string
	}{{c.Goal.Images, weighted}, {c.Goal.Models, weighted}, {c.Form.Allow, moved}, {c.Form.Block, moved}} {
		for k, arg := range list.args {
			list.args[k] = list.moved(arg)
		}
	}
	c.Search.Draft = moved(c.Search.Draft)
	if r.Inside {
		c.Page = filepath.Join(dir, r.Page)
	}
	return c, nil
}

// Merge joins runs of different chains of one search into the folder out, as store.Merge
// does, with a summary and the options, so that Run finds the best prompts of all chains
// when it resumes the whole. Errors: *onnx.ArgumentError, *store.Error, *store.MismatchError,
// *store.Error.
func Merge(out string, parts []string, partial bool) error {
	c, err := Saved(parts[0])
	if err != nil {
		return err
	}
	if err := store.Merge(out, parts, partial); err != nil {
		return err
	}
	r, err := store.Open(out)
	if err != nil {
		return err
	}
	if _, err := store.WriteSummary(out, store.TableOptions{}); err != nil {
		return err
	}
	ids := r.Header().ChainIDs
	c.Search.Chains, c.Search.ChainIDs = len(ids), nil
	if ids[len(ids)-1] != int64(len(ids)-1) {
		c.Search.ChainIDs = ids
	}
	for _, name := range []string{TokensFile, TargetsFile} {
		if err := join(out, name, parts[:1]); err != nil {
			return err
		}
	}
	if err := join(out, ScoresFile, parts); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.Resume, c.Page = out, "" // the page of the parts is not that of the whole
	return c.save("")
}

// join writes a file into the folder of a joint run: the lines that its parts have in
// theirs. A part may lack it where others have it.
func join(out, name string, parts []string) error {
	var all []byte
	var missing error
	for _, part := range parts {
		path := filepath.Join(part, name)
		text, err := os.ReadFile(path)
		if err != nil {
			missing = &store.Error{Path: path, Reason: "cannot be read", Err: err}
		}
		if all = append(all, text...); len(text) > 0 && text[len(text)-1] != '\n' {
			all = append(all, '\n') // a line that a kill cut off
		}
	}
	if len(all) == 0 {
		return missing
	}
	return writeFile(filepath.Join(out, name), all)
}

// writeFile writes a file of a run's folder, whole or not at all. Errors: *store.Error.
func writeFile(path string, text []byte) error {
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return store.CannotWrite(path, err)
	}
	return nil
}
