package ebm

import (
	"fmt"

	"github.com/gradhop/gradhop/energies"
)

// inputError is the error for settings, data or a model that cannot be used.
func inputError(format string, args ...any) error {
	return &energies.DefinitionError{What: "ebm", Reason: fmt.Sprintf(format, args...)}
}

// runError is the error for a run that failed, as one whose weights diverged.
func runError(format string, args ...any) error {
	return fmt.Errorf("ebm: "+format, args...)
}
