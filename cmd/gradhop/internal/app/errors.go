package app

import "fmt"

// UsageError reports flags or arguments that cannot be used. The program exits with
// code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// ExitCode returns 2: bad usage or input.
func (*UsageError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a *UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// FailedError reports that some of several inputs failed, each of which was reported
// when it did. The program exits with code 1.
type FailedError struct{ Failed, Of int }

func (e *FailedError) Error() string {
	return fmt.Sprintf("%d of %d inputs failed", e.Failed, e.Of)
}

// ExitCode returns 1: a run that failed.
func (*FailedError) ExitCode() int { return 1 }
