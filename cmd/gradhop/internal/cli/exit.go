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

// The exit codes beside those of app.
const (
	exitDone        = 0
	exitInterrupted = 130
)

func conclude(ctx context.Context, a *app.App, command string, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCode(ctx, err)
	if code == exitInterrupted {
		a.Logf("interrupted")
		return code
	}
	a.Errorf("%s", firstLine(err))
	if code == app.BadInput {
		a.Logf("see %s --help", command)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	code, ok := app.Code(err)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case ok:
		return code
	case unknownCommand(err):
		return app.BadInput
	}
	return app.Failed
}

// flagError returns a one-line error with the flag, its value and the reason.
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
		if cause == strconv.ErrSyntax {
			cause = errors.New("want a whole number, 0 or more")
		}
	}
	return fmt.Errorf("--%s %s: %w", bad.GetFlag().Name, value, cause)
}

// unknownCommand recognises cobra's errors about commands and arguments, which have no types.
func unknownCommand(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "unknown command ") || strings.HasPrefix(text, "required flag") || strings.Contains(text, "arg(s)")
}

// firstLine returns the error on one line, without control characters. Repeated texts of joined errors
// are dropped: a full disk, for instance, is reported both by the run and by closing its folder.
func firstLine(err error) string {
	var said []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, line) }) {
			said = append(said, line)
		}
	}
	return app.Plain(strings.Join(said, "; "))
}
