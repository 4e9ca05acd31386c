package app

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gradhop/gradhop/tasks/sample"
)

// Error is an error with the exit code of the program.
type Error struct {
	Code int // 1, 2 or 3: see the help of the program
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// ExitCode returns Code.
func (e *Error) ExitCode() int { return e.Code }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Usage reports flags, arguments or input that cannot be used: exit code 2.
func Usage(err error) error { return &Error{2, err} }

// Usagef is Usage with a text.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Classify gives an error about a file of a model its exit code, where it has none: 3
// for a file that cannot be read, 2 for a format that is not supported.
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

// Flagged names the options of a task in an error as flags.
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
