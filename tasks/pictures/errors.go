package pictures

import (
	"fmt"
	"strings"
)

// FileError is what all errors about one file have in common: this file cannot be used,
// and others may.
type FileError interface {
	error
	// Path is the file, as it was named to this package.
	Path() string
}

var (
	_ FileError = (*ReadError)(nil)
	_ FileError = (*NotImageError)(nil)
	_ FileError = (*FormatError)(nil)
	_ FileError = (*TruncatedError)(nil)
	_ FileError = (*DamagedError)(nil)
	_ FileError = (*TooLargeError)(nil)
)

// ReadError reports a file or folder that cannot be read.
type ReadError struct {
	File string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("pictures: %s: %v", e.File, e.Err) }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Path returns File.
func (e *ReadError) Path() string { return e.File }

// EmptyError reports a folder without files.
type EmptyError struct{ Dir string }

func (e *EmptyError) Error() string { return fmt.Sprintf("pictures: no files in %s", e.Dir) }

// NotImageError reports a file that is no picture of any format known by name.
type NotImageError struct {
	File  string
	Bytes int // the size of the file
}

func (e *NotImageError) Error() string {
	if e.Bytes == 0 {
		return fmt.Sprintf("pictures: %s: the file is empty", e.File)
	}
	return fmt.Sprintf("pictures: %s: not a picture", e.File)
}

// Path returns File.
func (e *NotImageError) Path() string { return e.File }

// FormatError reports a picture in a format, or with a feature of a format, that is not read.
type FormatError struct {
	File   string
	Format string // "HEIC", "TIFF"
	Err    error  // the decoder's reason, or nil if no file of this format is read
}

func (e *FormatError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("pictures: %s: this kind of %s cannot be read: %v", e.File, e.Format, e.Err)
	}
	return fmt.Sprintf("pictures: %s: %s cannot be read; convert it to one of %s", e.File, e.Format, strings.Join(Formats, ", "))
}

// Unwrap returns the decoder's reason.
func (e *FormatError) Unwrap() error { return e.Err }

// Path returns File.
func (e *FormatError) Path() string { return e.File }

// TruncatedError reports a picture whose end is missing.
type TruncatedError struct {
	File, Format string
	Err          error
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("pictures: %s: the %s file is cut off", e.File, e.Format)
}

// Unwrap returns the decoder's error.
func (e *TruncatedError) Unwrap() error { return e.Err }

// Path returns File.
func (e *TruncatedError) Path() string { return e.File }

// DamagedError reports a picture whose content is wrong.
type DamagedError struct {
	File, Format string
	Err          error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("pictures: %s: the %s file is damaged: %v", e.File, e.Format, e.Err)
}

// Unwrap returns the decoder's error.
func (e *DamagedError) Unwrap() error { return e.Err }

// Path returns File.
func (e *DamagedError) Path() string { return e.File }

// TooLargeError reports a picture beyond the limits. Either Width and Height or Bytes say
// what is too large.
type TooLargeError struct {
	File          string
	Width, Height int
	Bytes         int64
	Limit         int64 // of pixels or of bytes
}

func (e *TooLargeError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("pictures: %s: %d bytes, the limit is %d", e.File, e.Bytes, e.Limit)
	}
	return fmt.Sprintf("pictures: %s: %d x %d pixels, the limit is %d pixels", e.File, e.Width, e.Height, e.Limit)
}

// Path returns File.
func (e *TooLargeError) Path() string { return e.File }

// ConfigError reports a preprocessor_config.json that cannot be used.
type ConfigError struct {
	Field string // "" if the file as a whole is at fault
	Value string // as it stands in the file
	Want  string
	Err   error // what is wrong with the whole, as the error of reading JSON; or nil
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("pictures: preprocessor_config.json: %v", e.Err)
	}
	return fmt.Sprintf("pictures: preprocessor_config.json: %s is %s: want %s", e.Field, e.Value, e.Want)
}

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// UnsupportedError reports a setting of a preprocessor_config.json that is valid and not
// implemented.
type UnsupportedError struct{ Field, Value, Want string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("pictures: preprocessor_config.json: %s %s is not supported: want %s", e.Field, e.Value, e.Want)
}
