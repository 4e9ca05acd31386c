package recall

import (
	"os"
	"path/filepath"
	"strings"
)

// Absolute makes the file that a flag's value names independent of the current folder.
// Values that name no file that is there, such as "random", come back as they are.
func Absolute(path string) string {
	if _, err := os.Stat(path); err != nil {
		return path
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// AbsoluteNamed does so for a value of the form NAME=FILE.
func AbsoluteNamed(value string) string {
	name, path, ok := strings.Cut(value, "=")
	if !ok {
		return value
	}
	return name + "=" + Absolute(path)
}
