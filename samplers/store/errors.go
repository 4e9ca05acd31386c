package store

import "fmt"

// NotOursError reports a folder that exists and holds something else than a run.
type NotOursError struct{ Dir string }

func (e *NotOursError) Error() string {
	return fmt.Sprintf("store: %s is not the folder of a run: it has no %s", e.Dir, markerName)
}

// ExitCode returns 2: bad usage or input.
func (*NotOursError) ExitCode() int { return 2 }

// MissingError reports a folder that is not there. It wraps the system's error, an
// fs.ErrNotExist most often.
type MissingError struct {
	Dir string
	Err error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("store: no run in %s: %v", e.Dir, cause(e.Err))
}

// ExitCode returns 2: bad usage or input.
func (*MissingError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Err }

// ExistsError reports a folder that holds a run already.
type ExistsError struct{ Dir string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("store: %s holds a run already; resume it, or name another folder", e.Dir)
}

// ExitCode returns 2: bad usage or input.
func (*ExistsError) ExitCode() int { return 2 }

// LockedError reports a folder that another Writer, of this or another process,
// is writing.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("store: %s is being written by another process", e.Dir)
}

// ExitCode returns 2: bad usage or input.
func (*LockedError) ExitCode() int { return 2 }

// HeaderError reports a Header that cannot describe a run.
type HeaderError struct{ Field, Reason string }

func (e *HeaderError) Error() string { return fmt.Sprintf("store: %s: %s", e.Field, e.Reason) }

// ExitCode returns 2: bad usage or input.
func (*HeaderError) ExitCode() int { return 2 }

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
	return fmt.Sprintf("store: %s is of another run: %s is %s there, %s here", e.Dir, e.Field, e.There, e.Here)
}

// ExitCode returns 2: bad usage or input.
func (*MismatchError) ExitCode() int { return 2 }

// OverlapError reports two runs to be merged that both have a chain.
type OverlapError struct {
	Chain  int64
	First  string // folder
	Second string // folder
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("store: chain %d is both in %s and in %s", e.Chain, e.First, e.Second)
}

// ExitCode returns 2: bad usage or input.
func (*OverlapError) ExitCode() int { return 2 }

// WriteError reports a file that could not be written: a full disk, most often,
// in which case it wraps syscall.ENOSPC. What was there before is untouched.
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

// FormatError reports a file that is damaged or of a format not known here.
type FormatError struct {
	Path   string
	Reason string
	Err    error // or nil
}

func (e *FormatError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("store: %s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("store: %s: %s: %v", e.Path, e.Reason, cause(e.Err))
}

// ExitCode returns 2: bad usage or input.
func (*FormatError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// StateError reports a step that is not the next of the run that a Writer was
// made for.
type StateError struct{ Field, Want, Got string }

func (e *StateError) Error() string {
	return fmt.Sprintf("store: observed a step of another run: %s is %s, not %s", e.Field, e.Got, e.Want)
}
