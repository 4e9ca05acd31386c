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
	// mostBytes bounds all caches of a folder, counted in blocks of the disk.
	mostBytes = 256 << 20
	block     = 4 << 10
	// tidyPuts is the number of vectors that are written from one tidying to the next, the
	// first of which is that of the first vector: the bound is passed by no more.
	tidyPuts = 4096
	// useGrain is how exactly the time of the last use is known, so that a set of pictures
	// that is read every minute is not a write a picture.
	useGrain = time.Hour
	// leftoverAge is the age at which a file that was begun is taken for one of a process
	// that was killed: writing takes an instant.
	leftoverAge = 24 * time.Hour
)

// isPartial tells the temporary file of a vector, as package atomicfile names it.
func isPartial(name string) bool {
	of, _, found := strings.Cut(strings.TrimPrefix(name, "."), ".")
	return found && name[0] == '.' && isHex(of, len(Sum{}))
}

// use takes down that a vector was used, in the time at which its file was changed. A cache
// that cannot be written stays as it is.
func use(path string) {
	now := time.Now()
	if st, err := os.Stat(path); err == nil && now.Sub(st.ModTime()) > useGrain {
		_ = os.Chtimes(path, time.Time{}, now)
	}
}

// tidy removes from the caches below root what killed processes left, and the vectors that
// were not used for longest until the rest takes no more than most bytes. Any number of
// processes may do so at a time: a file that another has removed is gone, and one that a
// process was about to read is one that it does not find. Folders stay, since a process may
// be about to write there; so do files that are none of a cache.
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
			if err != nil { // it is gone
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

// isHex reports whether a name is that of n bytes in hex, as this package writes them.
func isHex(name string, n int) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == n && hex.EncodeToString(b) == name
}
