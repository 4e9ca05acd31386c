//go:build unix

package onnx

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// minMapped is the smallest size of a mapped file in bytes.
const minMapped = 1 << 20

type fileKey struct {
	dev, ino, size int64
	changed        time.Time
}

var mappings = struct {
	sync.Mutex
	of map[fileKey][]byte
}{of: map[fileKey][]byte{}}

// mapped returns the contents of f as a read-only mapping. It returns the same mapping until the file
// changes.
func mapped(f *os.File, info fs.FileInfo) ([]byte, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Size() != int64(int(info.Size())) {
		return nil, errors.ErrUnsupported
	}
	key := fileKey{int64(st.Dev), int64(st.Ino), info.Size(), info.ModTime()}
	mappings.Lock()
	defer mappings.Unlock()
	if b, ok := mappings.of[key]; ok {
		return b, nil
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	mappings.of[key] = b
	return b, nil
}
