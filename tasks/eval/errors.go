package eval

import (
	"errors"
	"fmt"
	"os"
)

// FileError reports an invalid or unreadable file.
type FileError struct {
	// Path is the file.
	Path string
	// Line is the line of the error from 1, or 0 if unknown.
	Line int
	// Where is the part at fault, such as "sentence 3: infill_pos", or "".
	Where string
	// Err is the cause.
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

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

func unreadable(path string, err error) *FileError {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err // without the path, which FileError adds
	}
	return &FileError{Path: path, Err: err}
}
