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

// Sealed files are JSON objects whose first field is the sha256 of the rest, so that a
// damaged or edited one is noticed wherever it is read.
const (
	sealHead = "{\n  \"sha256\": \""
	sealTail = "\",\n"
)

// seal writes v, a struct that is not empty, as a sealed object.
func seal(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("store: " + err.Error()) // our own types: no channel, no NaN
	}
	body := append(text[2:], '\n')
	sum := sha256.Sum256(body)
	return append([]byte(sealHead+hex.EncodeToString(sum[:])+sealTail), body...)
}

// unseal returns an error where a text is not as seal wrote it.
func unseal(text []byte) error {
	rest, ok := bytes.CutPrefix(text, []byte(sealHead))
	sum, body, _ := bytes.Cut(rest, []byte(sealTail))
	if want := sha256.Sum256(body); !ok || string(sum) != hex.EncodeToString(want[:]) {
		return errors.New("its sha256 is not that of its contents")
	}
	return nil
}

// WriteSealed writes a struct as JSON to a file of a run's folder, whole or not at all,
// with its sha256. Errors are *Error.
func WriteSealed(dir, name string, v any) error {
	f := folder{dir: dir, disk: system{}}
	return f.commit(name, seal(v))
}

// ReadSealed reads what WriteSealed wrote. Errors are *Error; one for a missing file
// matches fs.ErrNotExist.
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
