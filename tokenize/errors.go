package tokenize

import "fmt"

// EncodingError says that a text is not UTF-8.
type EncodingError struct {
	Offset int // of the first byte that is wrong
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("tokenize: text is not UTF-8 at byte %d", e.Offset)
}

// FormatError says that a tokenizer's file is broken or incomplete.
type FormatError struct {
	File string
	Line int   // from 1; 0 where the error belongs to no line
	Err  error // what is wrong
}

func (e *FormatError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("tokenize: %s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("tokenize: %s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// UnsupportedError says that a file is well formed and asks for something that this package lacks.
type UnsupportedError struct {
	File, What string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tokenize: %s: unsupported: %s", e.File, e.What)
}
