package prompttune

import (
	"errors"
	"fmt"
	"io/fs"
)

// InputError reports a template, a word list, a target or a setting that cannot be used:
// other input may do.
type InputError struct {
	What   string // what is at fault, as "template \"a _b\"" or "the word \"x\""
	Reason string
	Err    error // the cause, or nil
}

func (e *InputError) Error() string { return fmt.Sprintf("prompttune: %s: %s", e.What, e.Reason) }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// ExitCode returns 2: bad usage or input.
func (*InputError) ExitCode() int { return 2 }

// badInput returns an *InputError.
func badInput(what, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &InputError{What: what, Reason: err.Error(), Err: errors.Unwrap(err)}
}

// withoutPath is err without the path that the error around it names already.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// tooLong reports a text of more tokens than the model takes, of which some are blanks.
func tooLong(what string, tokens, limit, blanks int) error {
	reason := fmt.Sprintf("it has %d tokens including begin and end, the model takes %d", tokens, limit)
	if rest := limit - (tokens - blanks); blanks > 0 && rest > 0 {
		reason += fmt.Sprintf(": at most %d blanks", rest)
	}
	return &InputError{What: what, Reason: reason}
}
