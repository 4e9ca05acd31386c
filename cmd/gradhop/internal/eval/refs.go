package eval

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// readFile reads the sentences of a file; - is stdin. Errors are *app.Error around
// a *FileError.
func readFile(path string, stdin io.Reader, read func(io.Reader) ([][]string, error)) ([][]string, error) {
	in, name := stdin, "standard input"
	if path != "-" {
		name = path
		f, err := os.Open(path)
		if err != nil {
			return nil, usage(name, err)
		}
		defer f.Close()
		in = f
	}
	s, err := read(in)
	if err != nil {
		return nil, usage(name, err)
	}
	return s, nil
}

// usage is the error of a file that the user named.
func usage(path string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err // the path is named already
	}
	return app.Usage(&FileError{path, err})
}

// readRefs reads reference files. Their names are those of the files without folder and
// extension, or the paths as given where those would be the same.
func readRefs(paths []string) ([]textmetrics.Refs, error) {
	if len(paths) == 0 {
		return nil, app.Usagef("no references: give at least one file with --refs")
	}
	var refs []textmetrics.Refs
	uses := map[string]int{}
	for _, path := range paths {
		s, err := readFile(path, nil, textmetrics.ReadReferences)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(path)
		name := strings.TrimSuffix(base, filepath.Ext(base))
		uses[name]++
		refs = append(refs, textmetrics.Refs{Name: name, Sentences: s})
	}
	for k, path := range paths {
		if uses[refs[k].Name] > 1 {
			refs[k].Name = path
		}
	}
	return refs, nil
}

// mixing turns the flag --mix, in which 0 means all, into an option of textmetrics. One
// set of references has no mixture.
func mixing(n int, refs []textmetrics.Refs) (textmetrics.Options, error) {
	switch {
	case n < 0:
		return textmetrics.Options{}, app.Usagef("--mix %d: want 0 or more", n)
	case len(refs) < 2:
		n = 0
	case n == 0:
		n = math.MaxInt
	}
	return textmetrics.Options{MixPerRef: n}, nil
}

// sets are the comparisons of a report with references, the mixture last.
func sets(r textmetrics.Report) []textmetrics.RefReport {
	list := r.Refs[:len(r.Refs):len(r.Refs)]
	if r.Mix != nil {
		list = append(list, *r.Mix)
	}
	return list
}
