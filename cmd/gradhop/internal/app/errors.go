package app

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gradhop/gradhop/tasks/sample"
)

// Error is an error with an exit code.
type Error struct {
	Code int // 1, 2 or 3, as listed in the help
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// ExitCode returns Code.
func (e *Error) ExitCode() int { return e.Code }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Usage marks an error of flags, arguments or input, with exit code 2.
func Usage(err error) error { return &Error{2, err} }

// Usagef is Usage with a formatted message.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Classify adds an exit code to an error about a model file that has none: 3 if the file cannot be
// read, 2 if its format is not supported.
func Classify(err error) error {
	var coded interface {
		error
		ExitCode() int
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &coded):
		return err
	case errors.As(err, &path):
		return &Error{3, err}
	case errors.Is(err, errors.ErrUnsupported):
		return Usage(err)
	}
	return err
}

// Flagged converts the option names in a task's error to flags.
func Flagged(err error) error {
	var bad *sample.OptionError
	if !errors.As(err, &bad) {
		return Classify(err)
	}
	where := bad.Value
	if bad.Option != "" {
		where = strings.TrimSpace("--" + bad.Option + " " + bad.Value)
	}
	return Usagef("%s: %s", where, bad.Reason)
}
