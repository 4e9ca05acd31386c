package store

import (
	"fmt"
)

// Error reports a folder, a file or a Header that cannot be used as asked.
type Error struct {
	// Path is the folder or file, or the field of a Header.
	Path   string
	Reason string
	Err    error // or nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("store: %s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("store: %s: %s: %v", e.Path, e.Reason, cause(e.Err))
}

// ExitCode returns 2: bad usage or input.
func (*Error) ExitCode() int { return 2 }

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
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("store: %s is another run: %s is %s there, %s here", e.Dir, e.Field, e.There, e.Here)
}

// ExitCode returns 2: bad usage or input.
func (*MismatchError) ExitCode() int { return 2 }

// WriteError reports a file that could not be written: a full disk, most often,
// in which case it wraps syscall.ENOSPC. What was there before is unchanged.
type WriteError struct {
	Path string
	Err  error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("store: cannot write %s: %v", e.Path, cause(e.Err))
}

// ExitCode returns 1: a run that failed.
func (*WriteError) ExitCode() int { return 1 }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }
