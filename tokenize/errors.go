package tokenize

import (
	"errors"
	"fmt"
)

// Error reports a tokenizer file that is broken, incomplete or unsupported, or a text that is not valid
// UTF-8.
type Error struct {
	File string // the file, or "" if the text is at fault
	Line int    // line number from 1, or 0 if unknown
	// Offset is the position of the first invalid byte of the text.
	Offset int
	// Unsupported means that the file is well formed but needs a feature that is not implemented.
	Unsupported bool
	Err         error // the cause
}

func (e *Error) Error() string {
	switch {
	case e.File == "":
		return fmt.Sprintf("tokenize: %v at byte %d", e.Err, e.Offset)
	case e.Unsupported:
		return fmt.Sprintf("tokenize: %s: unsupported: %v", e.File, e.Err)
	case e.Line > 0:
		return fmt.Sprintf("tokenize: %s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("tokenize: %s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unsupported returns the error for a well-formed file that needs an unimplemented feature. InFile adds
// the name of the file.
func Unsupported(format string, args ...any) error {
	return &Error{Unsupported: true, Err: fmt.Errorf(format, args...)}
}

// InFile returns err as an *Error about file, unless it names a file already.
func InFile(file string, err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return &Error{File: file, Err: err}
	case e.File == "":
		return &Error{File: file, Line: e.Line, Unsupported: e.Unsupported, Err: e.Err}
	}
	return e
}
