package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FormatError says that a file is bad: truncated, not ONNX, or contradicting itself.
type FormatError struct {
	Path   string // the file, or empty for a model in memory
	Offset int64  // the byte in the file, or -1 where there is no single one
	Field  string // the place in the model, as "graph.node[3].attribute[0].t", or the node
	Reason string
	// Problems are what [Check] found, at most 100, and More counts those beyond them.
	// Both are zero in the errors of other functions.
	Problems []Problem
	More     int
}

// Error returns one line.
func (e *FormatError) Error() string { return describe("", e.Path, e.Field, e.Reason, e.Offset) }

// ExitCode returns 2: bad usage or input.
func (*FormatError) ExitCode() int { return 2 }

// UnsupportedError says that a file may be right but uses something that is not
// handled yet. It matches [errors.ErrUnsupported].
type UnsupportedError struct {
	Package string // the package that lacks it, or empty for this one: the message begins with it
	Path    string // the file, or empty for a model in memory
	Offset  int64  // the byte in the file, or -1 where there is no single one
	Field   string // the place in the model, as "graph.sparse_initializer[0]"
	Reason  string
}

// Error returns one line.
func (e *UnsupportedError) Error() string {
	return describe(e.Package, e.Path, e.Field, e.Reason, e.Offset)
}

// ExitCode returns 2: bad usage or input.
func (*UnsupportedError) ExitCode() int { return 2 }

// Is reports whether target is [errors.ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// ArgumentError says that a caller asked for something that is not there or not
// possible.
type ArgumentError struct {
	Package  string // the package that was called: the message begins with it
	Argument string // what was given, as "input", "Provider" or the name of a file
	Value    string // its value, or empty where it is missing
	Reason   string // what is wrong with it and what would be right
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

// ExitCode returns 2: bad usage or input.
func (*ArgumentError) ExitCode() int { return 2 }

// NoSuchName is the error for the name of an input or output that is not among have, or
// that is empty where a choice must be made.
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

// oneLine escapes what would not print on one line: names in a file can hold
// anything.
func oneLine(s string) string {
	odd := func(r rune) bool { return !strconv.IsPrint(r) }
	if !strings.ContainsFunc(s, odd) && utf8.ValidString(s) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// WithPath sets the file of an error that a decoder made.
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
