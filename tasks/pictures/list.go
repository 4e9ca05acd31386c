package pictures

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// List returns the files below a folder, in lexical order, or the path itself if it is a
// file. Whether a file is a picture is for [Decode] to say, by its content.
//
// Files and folders whose names begin with a dot are left out unless path itself names one.
// Links to files are followed, links to folders are not. A folder that cannot be opened is
// itself in the list, so that reading it gives the error that belongs to it.
//
// Errors: *ReadError if path cannot be read, *EmptyError if there is no file below it.
func List(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, &ReadError{File: path, Err: reason(err)}
	}
	if !st.IsDir() {
		return []string{path}, nil
	}
	// WalkDir does not follow a link, not even the one that it starts from.
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, &ReadError{File: path, Err: reason(err)}
	}
	var files []string
	err = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if at == root {
			return err
		}
		rel, relErr := filepath.Rel(root, at)
		if relErr != nil {
			return relErr
		}
		named := filepath.Join(path, rel)
		switch {
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			if err != nil {
				files = append(files, named)
			}
		case regular(at, d):
			files = append(files, named)
		}
		return nil
	})
	if err != nil {
		return nil, &ReadError{File: path, Err: reason(err)}
	}
	if len(files) == 0 {
		return nil, &EmptyError{Dir: path}
	}
	return files, nil
}

// regular reports whether an entry is a file or a link to one. A link that leads nowhere
// counts, since a file was meant.
func regular(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	st, err := os.Stat(path)
	return err != nil || st.Mode().IsRegular()
}

// reason is err without the path that the error around it names already.
func reason(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}
