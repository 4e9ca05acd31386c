package sample

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/samplers/store"
)

// RecordName is the file in the folder of a run that has its options.
const RecordName = "command.json"

// record is that file.
type record struct {
	// Command is "sample".
	Command string `json:"command"`
	// Folder is the current folder of the process that began the run: relative paths
	// start there.
	Folder  string  `json:"folder"`
	Options Options `json:"options"`
}

// save writes the options into the folder of the run.
func (o *Options) save(dir string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	return store.WriteSealed(dir, RecordName, record{"sample", here, *o})
}

// save writes the options of a run, with the size of its pictures, into its folder.
func (p *plan) save(dir string) error {
	o := *p.o
	if pic := p.picture; pic != nil {
		o.Picture = fmt.Sprintf("%dx%dx%d", pic.Height, pic.Width, pic.Channels)
	}
	return o.save(dir)
}

// Load reads the options of the run in a folder, to continue it: Resume is set. Paths of
// files lead from the present folder. Errors: *store.Error, one that matches
// fs.ErrNotExist where the run has no options because a library made it, or a process that
// was killed at once; *OptionError for the run of another task.
func Load(dir string) (Options, error) {
	o := Defaults()
	if _, err := store.Open(dir); err != nil && !store.Begun(dir) {
		return o, err // which says what the folder lacks
	}
	r := record{Options: o}
	if err := store.ReadSealed(dir, RecordName, &r); err != nil {
		return o, err
	}
	if r.Command != "sample" {
		return o, &OptionError{"resume", dir, "a run of gradhop " + r.Command + ", which continues it: gradhop " + r.Command + " --resume " + dir}
	}
	o = r.Options
	o.Resume = dir
	if here, err := os.Getwd(); err == nil && here == r.Folder {
		return o, nil
	}
	moved := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		if full := filepath.Join(r.Folder, path); exists(full) {
			return full
		}
		return path // no file: "random", for instance
	}
	o.Model, o.Allow, o.Init = moved(o.Model), moved(o.Allow), moved(o.Init)
	for k, feed := range o.Feed {
		name, path, _ := strings.Cut(feed, "=")
		o.Feed[k] = name + "=" + moved(path)
	}
	return o, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
