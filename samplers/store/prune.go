package store

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// prune removes the chunks of an array with number from and above. Files are named "chain.chunk",
// "chain.chunk.0" or, for a coordinate, "chunk".
func (f *folder) prune(array string, from int) error {
	d, err := os.Open(filepath.Join(f.dir, array))
	if err != nil {
		return &Error{Path: filepath.Join(f.dir, array), Reason: "cannot be read", Err: err}
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return &Error{Path: d.Name(), Reason: "cannot be read", Err: err}
	}
	for _, name := range names {
		parts := strings.Split(name, ".")
		chunk := parts[min(1, len(parts)-1)]
		if n, err := strconv.Atoi(chunk); err != nil || n < from {
			continue
		}
		if err := f.remove(path.Join(array, name)); err != nil {
			return err
		}
	}
	return nil
}
