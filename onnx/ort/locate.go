package ort

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Found is the library that [Locate] chose.
type Found struct {
	Path    string    // the library file
	Version string    // the version that it reports, for instance "1.29.0"
	How     string    // how it was found; see [Attempt]
	Tried   []Attempt // what was tried before it, in order
}

// An Attempt is one place or source that was tried without success.
type Attempt struct {
	// How is "--ort-lib", the name of an environment variable, "beside the
	// executable", "cache", "system", "upstream", "npm" or "pip".
	How string
	// Path is the file or folder, or what was asked of the source.
	Path string
	// Err says why it gave nothing.
	Err error
}

// String is the attempt in a few words, for a list.
func (a Attempt) String() string {
	why := a.Err
	// These two name the place again.
	switch e := a.Err.(type) {
	case *LoadError:
		why = e.Err
	case *VersionError:
		why = fmt.Errorf("onnxruntime %s, version %s or later is needed", e.Found, e.Need)
	case *FetchError:
		why = e.Err
	}
	return fmt.Sprintf("%s %s: %s", a.How, a.Path, oneLine(why))
}

// Locate finds the library in the order of the package documentation,
// and fetches it when there is none and o allows it. It loads what it finds,
// to read the version, but does not initialise it.
//
// Errors: [LoadError] or [VersionError] for a library that was named
// explicitly, [DiskError] when the cache can't be written, [NotFoundError] with
// every place tried, or the error of a context that is done, after which
// nothing is left of the fetch.
func Locate(ctx context.Context, o Options) (Found, error) {
	found, _, err := locate(ctx, o)
	return found, err
}

func locate(ctx context.Context, o Options) (Found, library, error) {
	if how, path := explicit(o); path != "" {
		lib, err := openLibrary(resolve(path), how)
		if err != nil {
			return Found{}, library{}, err
		}
		return Found{Path: lib.path, Version: lib.version, How: how}, lib, nil
	}
	var tried []Attempt
	for _, p := range places() {
		lib, attempts, ok := p.search()
		tried = append(tried, attempts...)
		if ok {
			return Found{Path: lib.path, Version: lib.version, How: p.how, Tried: tried}, lib, nil
		}
	}
	if o.NoFetch {
		return Found{}, library{}, &NotFoundError{Tried: tried}
	}
	path, source, attempts, err := newFetcher(o).fetch(ctx)
	tried = append(tried, attempts...)
	if err != nil {
		var disk *DiskError
		if errors.As(err, &disk) || ctx.Err() != nil {
			return Found{}, library{}, err
		}
		return Found{}, library{}, &NotFoundError{Tried: tried}
	}
	lib, err := openLibrary(path, source)
	if err != nil {
		// The bytes are the pinned ones, so the machine is at fault: most
		// often its C library is too old. The reason names it.
		return Found{}, library{}, err
	}
	return Found{Path: lib.path, Version: lib.version, How: source, Tried: tried}, lib, nil
}

// explicit returns the library that the user named, and by what.
func explicit(o Options) (how, path string) {
	if o.Library != "" {
		return "--ort-lib", o.Library
	}
	for _, env := range []string{envLib, envLibOther} {
		if v := os.Getenv(env); v != "" {
			return env, v
		}
	}
	return "", ""
}

// resolve turns a folder into the library file in it, if it has one.
func resolve(path string) string {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return path
	}
	for _, n := range libraryNames() {
		if f := filepath.Join(path, n); isFile(f) {
			return f
		}
	}
	return path
}

// openLibrary checks and loads one file. Errors: [LoadError], [VersionError].
func openLibrary(path, how string) (library, error) {
	if err := checkImage(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no such file")
		}
		return library{}, &LoadError{Path: path, How: how, Err: err}
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // a bare name would make the loader search elsewhere
	}
	return load(path, how)
}

func load(path, how string) (library, error) {
	lib, err := probe(path)
	if err != nil {
		return library{}, &LoadError{Path: path, How: how, Err: err}
	}
	if lib.old() {
		lib.close()
		return library{}, &VersionError{Path: lib.path, How: how, Found: lib.version, Need: Need}
	}
	return lib, nil
}

// A place is one entry of the search: a folder, or the dynamic loader when dir
// is "".
type place struct {
	how string
	dir string
	err error // why the folder is not known
}

// search looks for a usable library. The attempts say why each candidate was
// passed over; a folder without candidates gives one attempt.
func (p place) search() (library, []Attempt, bool) {
	if p.err != nil {
		return library{}, []Attempt{{How: p.how, Path: p.dir, Err: p.err}}, false
	}
	if p.dir == "" {
		return p.searchLoader()
	}
	var tried []Attempt
	for _, n := range libraryNames() {
		path := filepath.Join(p.dir, n)
		if !isFile(path) {
			continue
		}
		lib, err := openLibrary(path, p.how)
		if err == nil {
			return lib, tried, true
		}
		tried = append(tried, Attempt{How: p.how, Path: path, Err: err})
	}
	if len(tried) == 0 {
		err := fmt.Errorf("no %s there", libraryNames()[0])
		tried = append(tried, Attempt{How: p.how, Path: p.dir, Err: err})
	}
	return library{}, tried, false
}

func (p place) searchLoader() (library, []Attempt, bool) {
	var tried []Attempt
	for _, n := range loaderNames() {
		lib, err := load(n, p.how)
		if err == nil {
			return lib, tried, true
		}
		// The loader's text for "not found" is long and the same each time.
		var bad *LoadError
		if errors.As(err, &bad) && strings.Contains(bad.Err.Error(), "No such file") {
			err = errors.New("not known to the dynamic loader")
		}
		tried = append(tried, Attempt{How: p.how, Path: n, Err: err})
	}
	return library{}, tried, false
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}
