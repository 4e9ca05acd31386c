package infill

import "fmt"

// InputError is what all errors about a text have in common: the text is at fault,
// and another one may do.
type InputError interface {
	error
	input()
}

// EmptyError reports a text without a word.
type EmptyError struct{}

func (*EmptyError) Error() string { return "infill: the text is empty" }
func (*EmptyError) input()        {}

// ExitCode returns 2: bad usage or input.
func (*EmptyError) ExitCode() int { return 2 }

// NoBlankError reports a text without a blank.
type NoBlankError struct {
	Mask string // how the model spells a blank
}

func (e *NoBlankError) Error() string {
	return fmt.Sprintf("infill: the text has no %s: nothing to fill", e.Mask)
}
func (*NoBlankError) input() {}

// ExitCode returns 2: bad usage or input.
func (*NoBlankError) ExitCode() int { return 2 }

// TooLongError reports a text of more tokens than the model takes.
type TooLongError struct {
	Tokens, Limit int // both with the two tokens around the text
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("infill: the text has %d tokens, the model takes %d", e.Tokens, e.Limit)
}
func (*TooLongError) input() {}

// ExitCode returns 2: bad usage or input.
func (*TooLongError) ExitCode() int { return 2 }

// EncodingError reports a text that is not UTF-8.
type EncodingError struct {
	Offset int // of the first byte that is wrong
	Err    error
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("infill: the text is not UTF-8 at byte %d", e.Offset)
}

// ExitCode returns 2: bad usage or input.
func (*EncodingError) ExitCode() int { return 2 }

// Unwrap returns the tokenizer's error.
func (e *EncodingError) Unwrap() error { return e.Err }
func (*EncodingError) input()          {}

// VocabularyError reports a tokenizer and a model that do not belong together.
type VocabularyError struct {
	Model          string // where both come from
	Tokens, Scores int    // of the tokenizer, and of the model's logits
}

func (e *VocabularyError) Error() string {
	return fmt.Sprintf("infill: model %s: its tokenizer has %d tokens, its logits have %d", e.Model, e.Tokens, e.Scores)
}

// ExitCode returns 3: runtime or model unavailable.
func (*VocabularyError) ExitCode() int { return 3 }

// LoadError reports a model that cannot be used for infilling.
type LoadError struct {
	Model string
	Err   error
}

func (e *LoadError) Error() string { return fmt.Sprintf("infill: model %s: %v", e.Model, e.Err) }

// ExitCode returns 3: runtime or model unavailable.
func (*LoadError) ExitCode() int { return 3 }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// OptionError reports an option outside its range.
type OptionError struct{ Option, Value, Want string }

func (e *OptionError) Error() string {
	return fmt.Sprintf("infill: %s %q: want %s", e.Option, e.Value, e.Want)
}

// ExitCode returns 2: bad usage or input.
func (*OptionError) ExitCode() int { return 2 }
