package tokenize

import (
	"errors"
	"fmt"
)

// Error reports a tokenizer's file that is broken, incomplete or not supported, or a text
// that is not UTF-8.
type Error struct {
	File string // the file, or empty where the text is at fault
	Line int    // from 1; 0 where the error is of no one line
	// Offset is the first wrong byte of the text.
	Offset int
	// Unsupported says that the file is well formed and asks for something that is not
	// implemented.
	Unsupported bool
	Err         error // what is wrong
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

// Unsupported returns the error for a well-formed file that asks for what is not
// implemented.
func Unsupported(file, what string) error {
	return &Error{File: file, Unsupported: true, Err: errors.New(what)}
}
