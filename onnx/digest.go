package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Digest identifies the file that m was read from: its sha256, in hex. Of a model
// with external data it is the sha256 of the list of all its files, in the format of
// sha256sum, the model first and the others by name, so that a change of any weight
// changes it. A model that was built in memory is identified by its encoding. Errors
// are those of the file system and, for references that leave the folder, of Data.
func Digest(m *Model) (string, error) {
	locations := map[string]bool{}
	_, err := MapTensors(m, func(t *Tensor, _ bool) (*Tensor, error) {
		if t.External != nil {
			locations[t.External.Location] = true
			_, err := m.Data(t)
			return t, err
		}
		return t, nil
	})
	if err != nil {
		return "", err
	}
	if m.Path == "" {
		raw, err := Encode(m)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(raw)
		return hex.EncodeToString(sum[:]), nil
	}
	main, err := fileSum(m.FS, m.Path)
	if err != nil || len(locations) == 0 {
		return main, err
	}
	list := sha256.New()
	fmt.Fprintf(list, "%s  %s\n", main, filepath.Base(m.Path))
	for _, name := range slices.Sorted(maps.Keys(locations)) {
		path := filepath.Join(m.Dir, filepath.FromSlash(name))
		sum, err := fileSum(m.FS, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(list, "%s  %s\n", sum, name)
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

func fileSum(files fs.FS, path string) (string, error) {
	var f io.ReadCloser
	var err error
	if files != nil {
		f, err = files.Open(filepath.ToSlash(path))
	} else {
		f, err = os.Open(path)
	}
	if err != nil {
		return "", fmt.Errorf("onnx: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("onnx: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
