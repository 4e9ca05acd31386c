package ebm

import "fmt"

// Error reports settings, data or a model that cannot be used (Code 2), or a run that
// failed, such as one whose weights diverged (Code 1).
type Error struct {
	Reason string
	Code   int
}

func (e *Error) Error() string { return "ebm: " + e.Reason }

// ExitCode is the exit code of a command that ends with the error.
func (e *Error) ExitCode() int { return e.Code }

func inputError(format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), 2}
}

func runError(format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), 1}
}
