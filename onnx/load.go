package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Load reads the model in an .onnx file. Data in other files is read when
// [Model.Data] asks for it.
//
// A large file is mapped into memory instead of read, so its weights cost memory
// only where they are touched. Mapped bytes are read-only: writing to the Raw of a
// loaded tensor ends the process. A mapping lives as long as the process, since
// tensors of other models may refer to it; loading an unchanged file again uses
// the same one. Replacing the file by another (as [Save] does) is safe, cutting it
// short while it is mapped is not.
func Load(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	defer f.Close()
	b, err := contents(f)
	if err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", path, err)
	}
	m, err := Decode(b)
	if err != nil {
		return nil, WithPath(err, path)
	}
	m.Path, m.Dir = path, filepath.Dir(path)
	return m, nil
}

// LoadFS reads the model in a file of a file system, such as one embedded in the
// program. External data is looked for in the same file system.
func LoadFS(fsys fs.FS, name string) (*Model, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	m, err := Decode(b)
	if err != nil {
		return nil, WithPath(err, name)
	}
	m.Path, m.Dir, m.FS = name, path.Dir(name), fsys
	return m, nil
}

// contents returns the bytes of an open file, mapped if it is large.
func contents(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() >= minMapped {
		if b, err := mapped(f, info); err == nil {
			return b, nil
		}
	}
	return readAll(f, info.Size())
}

// readAll reads size bytes from the start of f.
func readAll(f *os.File, size int64) ([]byte, error) {
	if size != int64(int(size)) {
		return nil, errors.New("too large for this machine")
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}
