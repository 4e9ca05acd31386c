package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Output is where a command writes its data: standard output, or a file that gets its
// name only when everything is in it.
type Output struct {
	w    io.Writer
	file *os.File
	temp string // "" where the file is written directly
	path string
}

// OutputError reports an output that cannot be written.
type OutputError struct {
	Path string // "" for standard output
	// Before says that nothing was computed yet.
	Before bool
	Err    error
}

func (e *OutputError) Error() string {
	path := e.Path
	if path == "" {
		path = "standard output"
	}
	var p *os.PathError
	err := e.Err
	if errors.As(err, &p) {
		err = p.Err // the path is named already
	}
	return fmt.Sprintf("cannot write %s: %v", path, err)
}

// ExitCode returns 2 before anything was computed, else 1.
func (e *OutputError) ExitCode() int {
	if e.Before {
		return 2
	}
	return 1
}

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// Unwritable says that a folder cannot be made, which is the caller's matter unless the
// disk is full: such an error becomes an *OutputError.
func Unwritable(dir string, err error) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) || errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return &OutputError{Path: dir, Before: true, Err: failed}
}

// Create opens the output called path, or standard output where path is "" or "-". A
// path that cannot be written is an *OutputError now, not after the work is done.
func (a *App) Create(path string) (*Output, error) {
	if path == "" || path == "-" {
		return &Output{w: a.Out}, nil
	}
	fail := func(err error) (*Output, error) {
		return nil, &OutputError{Path: path, Before: true, Err: err}
	}
	target := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		target = real // replace what a link points to, not the link
	}
	st, err := os.Stat(target)
	switch {
	case err == nil && st.IsDir():
		return fail(errors.New("it is a folder"))
	case err == nil && !st.Mode().IsRegular(): // a device or a pipe cannot be renamed to
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return fail(err)
		}
		return &Output{w: f, file: f, path: path}, nil
	case err == nil:
		f, err := os.OpenFile(target, os.O_WRONLY, 0) // respects a file that is read-only
		if err != nil {
			return fail(err)
		}
		f.Close()
	}
	mode := os.FileMode(0o666) // less the umask
	if st != nil {
		mode = st.Mode().Perm()
	}
	f, err := createBeside(target, mode)
	if err != nil {
		return fail(err)
	}
	return &Output{w: f, file: f, temp: f.Name(), path: target}, nil
}

// createBeside creates a new file in the folder of target.
func createBeside(target string, mode os.FileMode) (*os.File, error) {
	for {
		name := fmt.Sprintf(".%s.%08x", filepath.Base(target), rand.Uint32())
		f, err := os.OpenFile(filepath.Join(filepath.Dir(target), name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}

// Write implements io.Writer. Its errors are *OutputError.
func (o *Output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		err = &OutputError{Path: o.path, Err: err}
	}
	return n, err
}

// Commit gives the file its name. Afterwards Discard does nothing.
func (o *Output) Commit() error {
	if o.file == nil {
		return nil
	}
	var err error
	if o.temp != "" {
		err = o.file.Sync() // else a full disk may show only after the rename
	}
	err = errors.Join(err, o.file.Close())
	if err == nil && o.temp != "" {
		err = os.Rename(o.temp, o.path)
	}
	if err != nil {
		o.remove()
		return &OutputError{Path: o.path, Err: err}
	}
	o.file, o.temp = nil, ""
	return nil
}

// Discard removes what was written, unless it was committed.
func (o *Output) Discard() {
	if o.file != nil {
		o.file.Close()
		o.remove()
	}
}

func (o *Output) remove() {
	if o.temp != "" {
		os.Remove(o.temp)
	}
	o.file, o.temp = nil, ""
}
