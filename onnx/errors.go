package onnx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FormatError says that a file is bad: cut short, not ONNX at all, or telling
// things that cannot be true.
type FormatError struct {
	Path   string // the file, or empty for a model in memory
	Offset int64  // the byte in the file, or -1 where there is no single one
	Field  string // the place in the model, as "graph.node[3].attribute[0].t"
	Reason string
}

// Error returns one line.
func (e *FormatError) Error() string { return describe(e.Path, e.Field, e.Reason, e.Offset) }

// ExitCode returns 2: bad usage or input.
func (*FormatError) ExitCode() int { return 2 }

// UnsupportedError says that a file may be right but uses something that this
// package does not handle. It matches [errors.ErrUnsupported].
type UnsupportedError struct {
	Path   string // the file, or empty for a model in memory
	Offset int64  // the byte in the file, or -1 where there is no single one
	Field  string // the place in the model, as "graph.sparse_initializer[0]"
	Reason string
}

// Error returns one line.
func (e *UnsupportedError) Error() string { return describe(e.Path, e.Field, e.Reason, e.Offset) }

// ExitCode returns 2: bad usage or input.
func (*UnsupportedError) ExitCode() int { return 2 }

// Is reports whether target is [errors.ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

func describe(path, field, reason string, offset int64) string {
	s := "onnx: "
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
