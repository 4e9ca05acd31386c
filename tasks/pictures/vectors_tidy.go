package pictures

import (
	"cmp"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// mostBytes limits all caches of a folder, in disk blocks.
	mostBytes = 256 << 20
	block     = 4 << 10
	// tidyPuts is the number of vectors written between two clean-ups, the first of which follows the
	// first vector. The limit is exceeded by at most this number of vectors.
	tidyPuts = 4096
	// useGrain is the resolution of the time of last use, which avoids a write per picture for
	// frequently used sets.
	useGrain = time.Hour
	// leftoverAge is the age at which a temporary file is attributed to a killed process.
	leftoverAge = 24 * time.Hour
)

// isPartial reports whether name is a temporary file of a vector, as named by package atomicfile.
func isPartial(name string) bool {
	of, _, found := strings.Cut(strings.TrimPrefix(name, "."), ".")
	return found && name[0] == '.' && isHex(of, len(Sum{}))
}

// use records the use of a vector in the modification time of its file. It ignores errors.
func use(path string) {
	now := time.Now()
	if st, err := os.Stat(path); err == nil && now.Sub(st.ModTime()) > useGrain {
		_ = os.Chtimes(path, time.Time{}, now)
	}
}

// tidy removes from the caches below root the files left by killed processes, and the least recently
// used vectors until the rest takes at most most bytes. Several processes may run it concurrently: a
// file removed by another process counts as removed. Folders are kept, since a process may be about to
// write there, as are unrelated files.
func tidy(root string, most int64) {
	type entry struct {
		path  string
		used  time.Time
		bytes int64
	}
	var all []entry
	total := int64(0)
	now := time.Now()
	caches, _ := os.ReadDir(root)
	for _, c := range caches {
		if !c.IsDir() || !isHex(c.Name(), keyBytes) {
			continue
		}
		dir := filepath.Join(root, c.Name())
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			vector := isHex(f.Name(), len(Sum{}))
			if !f.Type().IsRegular() || !vector && !isPartial(f.Name()) {
				continue
			}
			st, err := f.Info()
			if err != nil { // already removed
				continue
			}
			path := filepath.Join(dir, f.Name())
			switch {
			case vector:
				e := entry{path, st.ModTime(), (st.Size() + block - 1) / block * block}
				all, total = append(all, e), total+e.bytes
			case now.Sub(st.ModTime()) > leftoverAge:
				_ = os.Remove(path)
			}
		}
	}
	if total <= most {
		return
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, e := range all {
		if total <= most {
			return
		}
		_ = os.Remove(e.path)
		total -= e.bytes
	}
}

// isHex reports whether name is n bytes in hex, in lower case.
func isHex(name string, n int) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == n && hex.EncodeToString(b) == name
}
