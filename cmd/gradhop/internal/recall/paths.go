package recall

import (
	"os"
	"path/filepath"
	"strings"
)

// Path returns the file that a flag's value named when the current folder was another one.
// Of a value that names no file there, such as "random", it returns the value.
func Path(folder, value string) string {
	full := Output(folder, value)
	if _, err := os.Stat(full); err != nil {
		return value
	}
	return full
}

// Output does so for a file that need not be there.
func Output(folder, value string) string {
	if value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(folder, value)
}

// NamedPath does so for a value of the form NAME=FILE.
func NamedPath(folder, value string) string {
	name, path, ok := strings.Cut(value, "=")
	if !ok {
		return value
	}
	return name + "=" + Path(folder, path)
}

// WeightedPath does so for a value of the form FILE or FILE:WEIGHT.
func WeightedPath(folder, value string) string {
	if full := Path(folder, value); full != value {
		return full
	}
	if i := strings.LastIndexByte(value, ':'); i >= 0 {
		return Path(folder, value[:i]) + value[i:]
	}
	return value
}
