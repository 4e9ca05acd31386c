package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Model is a masked language model that is there to be read.
type Model struct {
	// Name is the built-in name, or the last element of the folder's path.
	Name string
	// FS holds the model's files.
	FS fs.FS
	// ONNX is the model file in FS, "model.onnx" or "onnx/model.onnx".
	ONNX string
	// Dir is the folder on disk, or "" for a built-in model.
	Dir string
	// SHA256 is that of the ONNX file, in hex. Weights that the file keeps in other
	// files take no part in it.
	SHA256 string
}

// onnxFiles are the places of the model file, in the order tried.
var onnxFiles = []string{"model.onnx", "onnx/model.onnx"}

// needed are the other files that every model has.
var needed = []string{"config.json"}

// UnknownError reports a name that is neither a built-in model nor a folder.
type UnknownError struct {
	Name  string
	Known []string // the built-in models
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("models: no model %q: it is neither a folder nor one of the built-in models (%s)", e.Name, strings.Join(e.Known, ", "))
}

// ExitCode returns 3: runtime or model unavailable.
func (*UnknownError) ExitCode() int { return 3 }

// MissingFileError reports a model folder that lacks a file. It matches
// fs.ErrNotExist.
type MissingFileError struct {
	Dir, File string
}

func (e *MissingFileError) Error() string {
	return fmt.Sprintf("models: %s has no %s", e.Dir, e.File)
}

// ExitCode returns 3: runtime or model unavailable.
func (*MissingFileError) ExitCode() int { return 3 }

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *MissingFileError) Unwrap() error { return fs.ErrNotExist }

// Open returns a built-in masked language model, by name, or the one in a folder. "" means
// Default. A folder with the name of a built-in model is reached as "./name". [OpenTowers]
// opens a CLIP.
//
// Errors: *UnknownError, *KindError for a CLIP, *MissingFileError, *ChecksumError for a
// built-in model that is not the one in the manifest, or those of reading the model file.
func Open(nameOrDir string) (Model, error) {
	if nameOrDir == "" {
		nameOrDir = Default
	}
	if _, ok := entries()[nameOrDir]; ok {
		return openBuiltIn(nameOrDir)
	}
	if st, err := os.Stat(nameOrDir); err != nil || !st.IsDir() {
		return Model{}, &UnknownError{Name: nameOrDir, Known: BuiltIn()}
	}
	return openDir(nameOrDir)
}

// verified remembers which built-in models were compared with the manifest.
var verified sync.Map // name -> error or nil

// files returns the files of a built-in model, compared with the manifest once.
func (e Entry) files() (fs.FS, error) {
	sub, err := fs.Sub(data, "data/"+e.Name)
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", e.Name, err)
	}
	check, _ := verified.LoadOrStore(e.Name, sync.OnceValue(func() error { return e.verify(sub) }))
	return sub, check.(func() error)()
}

func openBuiltIn(name string) (Model, error) {
	e := entries()[name]
	sub, err := e.files()
	if err != nil {
		return Model{}, err
	}
	m := Model{Name: name, FS: sub, ONNX: onnxFiles[0]}
	for _, f := range e.Files {
		if f.Name == m.ONNX {
			m.SHA256 = f.SHA256
		}
	}
	if m.SHA256 == "" {
		return Model{}, &KindError{Name: name, Have: kindCLIP, Want: kindMLM, Known: MLMs()}
	}
	return m, nil
}

func openDir(dir string) (Model, error) {
	m := Model{Name: folderName(dir), FS: os.DirFS(dir), Dir: dir}
	for _, name := range onnxFiles {
		if st, err := fs.Stat(m.FS, name); err == nil && !st.IsDir() {
			m.ONNX = name
			break
		}
	}
	if m.ONNX == "" && towerFile(m.FS, textTower) != "" {
		return Model{}, &KindError{Name: dir, Have: kindCLIP, Want: kindMLM, Known: MLMs()}
	}
	if m.ONNX == "" {
		return Model{}, &MissingFileError{Dir: dir, File: onnxFiles[0]}
	}
	for _, name := range needed {
		if _, err := fs.Stat(m.FS, name); errors.Is(err, fs.ErrNotExist) {
			return Model{}, &MissingFileError{Dir: dir, File: name}
		}
	}
	var err error
	m.SHA256, err = sumFile(m.FS, dir, m.ONNX)
	return m, err
}

// folderName is a name for the model in dir.
func folderName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
