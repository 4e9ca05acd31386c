package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/internal/atomicfile"
)

// Output is the destination of a command's data: standard output, or a file that is created when it is
// complete.
type Output struct {
	w      io.Writer
	device *os.File         // a device or a pipe, written directly
	file   *atomicfile.File // any other file
	path   string
}

// OutputError reports an output that cannot be written.
type OutputError struct {
	Path string // "" for standard output
	// Before means that nothing had been computed yet.
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
		err = p.Err // without the path, which is added below
	}
	return fmt.Sprintf("cannot write %s: %v", path, err)
}

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// Create opens the output path, or standard output if path is "" or "-". It returns an *OutputError at
// once if the path cannot be written.
func (a *App) Create(path string) (*Output, error) {
	if path == "" || path == "-" {
		return &Output{w: a.Out}, nil
	}
	fail := func(err error) (*Output, error) {
		return nil, &OutputError{Path: path, Before: true, Err: err}
	}
	target := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		target = real // replace the target of a link, not the link
	}
	st, err := os.Stat(target)
	switch {
	case err == nil && st.IsDir():
		return fail(errors.New("it is a folder"))
	case err == nil && !st.Mode().IsRegular(): // a device or a pipe cannot be replaced by renaming
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return fail(err)
		}
		return &Output{w: f, device: f, path: path}, nil
	case err == nil:
		f, err := os.OpenFile(target, os.O_WRONLY, 0) // fails for a read-only file
		if err != nil {
			return fail(err)
		}
		f.Close()
	}
	mode := os.FileMode(0o666) // reduced by the umask
	if st != nil {
		mode = st.Mode().Perm()
	}
	f, err := atomicfile.Create(target, mode)
	if err != nil {
		return fail(err)
	}
	return &Output{w: f, file: f, path: target}, nil
}

// Write implements io.Writer. Its errors are *OutputError.
func (o *Output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		err = &OutputError{Path: o.path, Err: err}
	}
	return n, err
}

// Commit completes the file. Afterwards Discard does nothing.
func (o *Output) Commit() error {
	var err error
	switch {
	case o.device != nil:
		err = o.device.Close()
	case o.file != nil:
		err = o.file.Commit()
	}
	o.device, o.file = nil, nil
	if err != nil {
		return &OutputError{Path: o.path, Err: err}
	}
	return nil
}

// Discard removes the file unless it was committed.
func (o *Output) Discard() {
	if o.device != nil {
		_ = o.device.Close()
	}
	if o.file != nil {
		o.file.Discard()
	}
	o.device, o.file = nil, nil
}
