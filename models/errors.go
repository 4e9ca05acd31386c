package models

import (
	"fmt"
	"io/fs"
	"strings"
)

// Error reports a model that is not there, is incomplete, or is of another kind than the
// one wanted. It matches fs.ErrNotExist where a file is missing.
type Error struct {
	Model  string // the name, folder or repository
	File   string // the file at fault, or empty
	Reason string // what is wrong with Model, and what to do

	missing bool // File is
	usage   bool // another model must be named
}

func (e *Error) Error() string { return "models: " + e.Model + e.Reason }

// ExitCode returns 3, runtime or model unavailable, or 2, bad usage, for a model of another
// kind.
func (e *Error) ExitCode() int {
	if e.usage {
		return 2
	}
	return 3
}

// Is reports whether target is fs.ErrNotExist and a file is missing.
func (e *Error) Is(target error) bool { return target == fs.ErrNotExist && e.missing }

// unknown is the error for a name that is no built-in model, no folder, and cannot be that
// of a repository.
func unknown(name string) error {
	return &Error{Model: fmt.Sprintf("no model %q", name), Reason: fmt.Sprintf(
		": it is not a folder, not built in (%s), and not owner/name on the Hugging Face Hub", strings.Join(BuiltIn(), ", "))}
}

// missingFile is the error for a folder or a repository that lacks a file. hint says what
// to do, or is empty.
func missingFile(dir, file, hint string) *Error {
	e := &Error{Model: dir, File: file, Reason: " has no " + file, missing: true}
	if hint != "" {
		e.Reason += "; " + hint
	}
	return e
}

// wrongKind is the error for a model of another kind than the one that is wanted, of which
// known are built in.
func wrongKind(name, have, want string, known []string) error {
	return &Error{Model: name, Reason: fmt.Sprintf(" is a %s; a %s is wanted (built in: %s)", have, want, strings.Join(known, ", ")), usage: true}
}
