package prompttune

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/gradhop/gradhop/energies"
)

// badInput returns the error for a template, a word list, a target or a setting that cannot
// be used; what names it, as "template \"a _b\"" or "the word \"x\"".
func badInput(what, format string, args ...any) error {
	return &energies.DefinitionError{What: "prompttune: " + what, Reason: fmt.Sprintf(format, args...)}
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
	return badInput(what, "%s", reason)
}
