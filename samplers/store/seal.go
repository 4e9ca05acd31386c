package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Sealed files are JSON objects whose first field is the SHA-256 of the rest, so that readers detect
// damage and edits.
const (
	sealHead = "{\n  \"sha256\": \""
	sealTail = "\",\n"
)

// seal encodes v, a non-empty struct, as a sealed object.
func seal(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("store: " + err.Error()) // own types without channels or NaN
	}
	body := append(text[2:], '\n')
	sum := sha256.Sum256(body)
	return append([]byte(sealHead+hex.EncodeToString(sum[:])+sealTail), body...)
}

// unseal returns an error if text is not a valid sealed object.
func unseal(text []byte) error {
	rest, ok := bytes.CutPrefix(text, []byte(sealHead))
	sum, body, _ := bytes.Cut(rest, []byte(sealTail))
	if want := sha256.Sum256(body); !ok || string(sum) != hex.EncodeToString(want[:]) {
		return errors.New("checksum mismatch")
	}
	return nil
}

// WriteSealed writes a struct as a sealed JSON file in a run's folder, atomically. Errors are *Error.
func WriteSealed(dir, name string, v any) error {
	f := folder{dir: dir, disk: system{}}
	return f.commit(name, seal(v))
}

// ReadSealed decodes a file written by WriteSealed. Errors are *Error; for a missing file it matches
// fs.ErrNotExist.
func ReadSealed(dir, name string, v any) error {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return &Error{Path: path, Reason: "cannot be read", Err: err}
	}
	if err := unseal(text); err != nil {
		return &Error{Path: path, Reason: "damaged", Err: err}
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &Error{Path: path, Reason: "damaged", Err: err}
	}
	return nil
}
