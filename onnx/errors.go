package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FormatError reports an invalid file: truncated, not ONNX, or inconsistent.
type FormatError struct {
	Path   string // the file, or "" for a model in memory
	Offset int64  // position in the file in bytes, or -1 if unknown
	Field  string // position in the model, such as "graph.node[3].attribute[0].t", or the node
	Reason string
	// Problems lists what [Check] found, at most 100; More counts the rest. Both are zero in errors of
	// other functions.
	Problems []Problem
	More     int
}

// Error returns one line.
func (e *FormatError) Error() string { return describe("", e.Path, e.Field, e.Reason, e.Offset) }

// UnsupportedError reports a feature that is not implemented. The file may be valid. It matches
// [errors.ErrUnsupported].
type UnsupportedError struct {
	Package string // the package that lacks the feature, the prefix of the message; "" means onnx
	Path    string // the file, or "" for a model in memory
	Offset  int64  // position in the file in bytes, or -1 if unknown
	Field   string // position in the model, such as "graph.sparse_initializer[0]"
	Reason  string
}

// Error returns one line.
func (e *UnsupportedError) Error() string {
	return describe(e.Package, e.Path, e.Field, e.Reason, e.Offset)
}

// Is reports whether target is [errors.ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// ArgumentError reports an invalid argument of a call.
type ArgumentError struct {
	Package  string // the package called, the prefix of the message
	Argument string // the argument, such as "input", "Provider" or a file name
	Value    string // its value, or "" if missing
	Reason   string // what is wrong and what would be right
	Err      error  // the cause, or nil
}

// Error returns one line.
func (e *ArgumentError) Error() string {
	what := e.Argument
	if e.Value != "" {
		what += fmt.Sprintf(" %q", e.Value)
	}
	if what != "" {
		what += ": "
	}
	return oneLine(e.Package + ": " + what + e.Reason)
}

// Unwrap returns the cause.
func (e *ArgumentError) Unwrap() error { return e.Err }

// NoSuchName returns the error for an input or output name that is not in have, or that is empty
// although the choice is ambiguous.
func NoSuchName(pkg, argument, name string, have []string) error {
	reason := fmt.Sprintf("the model has no such %s%s", argument, Nearest(name, have))
	switch {
	case len(have) == 0:
		reason = fmt.Sprintf("the model has no %ss", argument)
	case name == "":
		reason = "name one; the model has " + List(have)
	}
	return &ArgumentError{Package: pkg, Argument: argument, Value: name, Reason: reason}
}

func describe(pkg, path, field, reason string, offset int64) string {
	s := cmp.Or(pkg, "onnx") + ": "
	if path != "" {
		s += path + ": "
	}
	if field != "" {
		s += field + ": "
	}
	s += reason
	if offset >= 0 {
		s += fmt.Sprintf(" (at byte %d)", offset)
	}
	return oneLine(s)
}

// oneLine escapes line breaks and other control characters: names in a file are arbitrary.
func oneLine(s string) string {
	odd := func(r rune) bool { return !strconv.IsPrint(r) }
	if !strings.ContainsFunc(s, odd) && utf8.ValidString(s) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// WithPath sets the file of a FormatError or UnsupportedError.
func WithPath(err error, path string) error {
	var f *FormatError
	var u *UnsupportedError
	switch {
	case errors.As(err, &f):
		f.Path = path
	case errors.As(err, &u):
		u.Path = path
	}
	return err
}
