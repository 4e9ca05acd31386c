// Package record keeps in the folder of a run the options that it was begun with, so that
// it can be resumed without giving them again.
package record

import (
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/samplers/store"
)

// Name is that of the file.
const Name = "command.json"

// file is what it holds.
type file struct {
	// Command is the task, as the command line calls it.
	Command string `json:"command"`
	// Folder is the current folder of the process that began the run: relative paths in
	// Options start there.
	Folder  string `json:"folder"`
	Options any    `json:"options"`
}

// Save writes the options of a run, a struct. Errors: *store.Error.
func Save(dir, command string, options any) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	return store.WriteSealed(dir, Name, file{command, here, options})
}

// Load reads the options of the run in a folder into options, a pointer, and returns the
// task. moved turns a path in them to one that leads from the present folder; it leaves a
// text as it is that names no file. Errors: *store.Error, one that matches fs.ErrNotExist
// where a library made the run, or a process that was killed at once.
func Load(dir string, options any) (command string, moved func(path string) string, err error) {
	if _, err := store.Open(dir); err != nil && !store.Begun(dir) {
		return "", nil, err // which says what the folder lacks
	}
	f := file{Options: options}
	if err := store.ReadSealed(dir, Name, &f); err != nil {
		return f.Command, nil, err
	}
	here, err := os.Getwd()
	moved = func(path string) string {
		if path == "" || filepath.IsAbs(path) || err == nil && here == f.Folder {
			return path
		}
		full := filepath.Join(f.Folder, path)
		if _, err := os.Stat(full); err != nil {
			return path
		}
		return full
	}
	return f.Command, moved, nil
}
