package tokenize

import (
	"fmt"
	"io/fs"
	"strings"
)

// EncodingError says that a text is not UTF-8.
type EncodingError struct {
	Offset int // of the first byte that is wrong
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("tokenize: text is not UTF-8 at byte %d", e.Offset)
}

// MissingFileError says that a folder has none of the files that could hold the vocabulary, or a part
// of it.
// It matches fs.ErrNotExist.
type MissingFileError struct {
	Files []string
}

func (e *MissingFileError) Error() string {
	return "tokenize: no vocabulary: found neither " + strings.Join(e.Files, " nor ")
}

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *MissingFileError) Unwrap() error { return fs.ErrNotExist }

// FormatError says that a file is broken: not what its kind of file may contain.
type FormatError struct {
	File string
	Line int   // from 1; 0 where lines mean nothing
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

// UnsupportedError says that a file is well formed and asks for something this package lacks.
type UnsupportedError struct {
	File, What string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tokenize: %s: unsupported: %s", e.File, e.What)
}

// MissingPieceError says that a vocabulary lacks a token that its kind of model needs, such as [MASK].
type MissingPieceError struct {
	File, Piece string
}

func (e *MissingPieceError) Error() string {
	return fmt.Sprintf("tokenize: %s: vocabulary has no %s", e.File, e.Piece)
}

// DuplicateError says that a vocabulary lists a piece twice, or gives two pieces one id.
type DuplicateError struct {
	File, Piece string
	IDs         [2]int // the ids of the two entries
}

func (e *DuplicateError) Error() string {
	if e.IDs[0] == e.IDs[1] {
		return fmt.Sprintf("tokenize: %s: %q has the id %d of another piece", e.File, e.Piece, e.IDs[0])
	}
	return fmt.Sprintf("tokenize: %s: %q is listed twice, as %d and %d", e.File, e.Piece, e.IDs[0], e.IDs[1])
}

// ModelError says that splitting a word failed inside the WordPiece library.
type ModelError struct {
	Word string
	Err  error
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("tokenize: splitting %q: %v", e.Word, e.Err)
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }
