package eval

import (
	"errors"
	"fmt"
	"os"
)

// FileError reports a file that cannot be used.
type FileError struct {
	// Path is the file.
	Path string
	// Line is where it is at fault, from 1; 0 where that is not known.
	Line int
	// Where names the part at fault, such as "sentence 3: infill_pos", or is "".
	Where string
	// Err says what is wrong.
	Err error
}

func (e *FileError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Where != "" {
		s += ": " + e.Where
	}
	return s + ": " + e.Err.Error()
}

// ExitCode returns 2: bad usage or input.
func (*FileError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// unreadable is the error of a file that cannot be read.
func unreadable(path string, err error) *FileError {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err // the path is named already
	}
	return &FileError{Path: path, Err: err}
}
