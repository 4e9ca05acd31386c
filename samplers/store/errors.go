package store

import (
	"fmt"
)

// Error reports a folder, a file or a Header that cannot be used as asked, or a file that
// cannot be written.
type Error struct {
	// Path is the folder or file, or the field of a Header.
	Path   string
	Reason string
	Err    error // or nil

	write bool
}

func (e *Error) Error() string {
	if e.write {
		return fmt.Sprintf("store: cannot write %s: %v", e.Path, cause(e.Err))
	}
	if e.Err == nil {
		return fmt.Sprintf("store: %s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("store: %s: %s: %v", e.Path, e.Reason, cause(e.Err))
}

// ExitCode returns 2, bad usage or input, or 1, a failed run, where a file could not be
// written.
func (e *Error) ExitCode() int {
	if e.write {
		return 1
	}
	return 2
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MismatchError reports a run that is not the one asked for.
type MismatchError struct {
	// Dir is the folder.
	Dir string
	// Field names the setting as in gradhop.json, as "seed" or "settings.init".
	Field string
	// There is the folder's value, Here the other one.
	There, Here string
	// Reason, where it is not empty, says it in the words of a task.
	Reason string
}

func (e *MismatchError) Error() string {
	if e.Reason != "" {
		return e.Dir + ": " + e.Reason
	}
	return fmt.Sprintf("store: %s is another run: %s is %s there, %s here", e.Dir, e.Field, e.There, e.Here)
}

// ExitCode returns 2: bad usage or input.
func (*MismatchError) ExitCode() int { return 2 }

// CannotWrite is the *Error for a file or folder that could not be written: most often the
// disk is full, and it matches syscall.ENOSPC. What was there before is unchanged.
func CannotWrite(path string, err error) error {
	return &Error{Path: path, Err: err, write: true}
}
