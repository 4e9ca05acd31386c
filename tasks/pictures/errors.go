package pictures

import (
	"errors"
	"fmt"
	"strings"
)

// Problem says what is wrong with a file or a folder.
type Problem int

const (
	// Unreadable is a file or folder that cannot be read, or no regular file.
	Unreadable Problem = iota
	// NoFiles is a folder without files.
	NoFiles
	// NotPicture is a file in no known picture format.
	NotPicture
	// Unsupported is a format, a feature of a format, or a setting that is not implemented.
	Unsupported
	// Truncated is a picture whose end is missing.
	Truncated
	// Damaged is a picture whose content is wrong.
	Damaged
	// TooLarge is a picture beyond Limits.
	TooLarge
	// BadSetting is a setting of a preprocessor_config.json that makes no sense.
	BadSetting
)

// Error reports a file that cannot be used; others may.
type Error struct {
	File    string // as it was named to this package
	Problem Problem
	Detail  string // what is wrong, in words
	Err     error  // the cause, or nil
}

func (e *Error) Error() string { return fmt.Sprintf("pictures: %s: %s", e.File, e.Detail) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns 2: bad usage or input.
func (*Error) ExitCode() int { return 2 }

// unreadable reports a file that cannot be read.
func unreadable(file string, err error) error {
	err = reason(err)
	return &Error{File: file, Problem: Unreadable, Detail: err.Error(), Err: err}
}

// unsupportedFormat reports a format that is not read, or with err a feature of one that is.
func unsupportedFormat(file, format string, err error) error {
	detail := fmt.Sprintf("%s cannot be read; convert it to one of %s", format, strings.Join(Formats, ", "))
	if err != nil {
		detail = fmt.Sprintf("this kind of %s cannot be read: %v", format, err)
	}
	return &Error{File: file, Problem: Unsupported, Detail: detail, Err: err}
}

// settingsFile is the file that errors about settings name.
const settingsFile = "preprocessor_config.json"

func badSetting(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{File: settingsFile, Problem: BadSetting, Detail: err.Error(), Err: errors.Unwrap(err)}
}

func unsupportedSetting(field string, value any, want string) error {
	return &Error{File: settingsFile, Problem: Unsupported, Detail: fmt.Sprintf("%s %v is not supported: want %s", field, value, want)}
}
