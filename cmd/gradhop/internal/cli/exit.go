package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// The exit codes of the program that are decided here.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// conclude prints an error and returns its exit code.
func conclude(ctx context.Context, a *app.App, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCode(ctx, err)
	if code == exitInterrupted {
		a.Logf("interrupted")
		return code
	}
	a.Errorf("%s", firstLine(err))
	if code == exitUsage {
		a.Logf("see gradhop --help")
	}
	return code
}

// exitCode is the one place where errors become exit codes. An error that knows its
// code has a method ExitCode; of wrapped errors the outermost one decides.
func exitCode(ctx context.Context, err error) int {
	var coded interface {
		error
		ExitCode() int
	}
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case errors.As(err, &coded):
		return coded.ExitCode()
	case unknownCommand(err):
		return exitUsage
	}
	return exitFailed
}

// wanted says what flags of a type take.
var wanted = map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more", "float64": "a number"}

// flagError says on one line which flag cannot be what it was set to, and why.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	value, cause := bad.GetValue(), bad.Unwrap()
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		value = strconv.Quote(value)
	}
	var number *strconv.NumError
	if errors.As(cause, &number) {
		cause = number.Err
		if want, ok := wanted[bad.GetFlag().Value.Type()]; ok && cause == strconv.ErrSyntax {
			cause = errors.New("want " + want)
		}
	}
	return fmt.Errorf("--%s %s: %w", bad.GetFlag().Name, value, cause)
}

// unknownCommand recognises cobra's errors about commands and arguments, which have no
// type of their own.
func unknownCommand(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "unknown command ") || strings.HasPrefix(text, "required flag") || strings.Contains(text, "arg(s)")
}

// firstLine is the error on one line, without what would disturb a terminal. Of errors
// joined what has been said already is left out: that a disk is full ends a run, and is
// true when its folder is closed.
func firstLine(err error) string {
	var said []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, line) }) {
			said = append(said, line)
		}
	}
	return app.Plain(strings.Join(said, "; "))
}
