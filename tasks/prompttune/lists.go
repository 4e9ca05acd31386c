package prompttune

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// ReadWords reads a word list: a file with a word a line, or words with commas between
// them. What has a comma is words; what else has a path separator or a dot, or is the
// name of a file that is there, is a file. Empty lines are left out. Errors: *ListError.
func ReadWords(list string) ([]string, error) {
	if strings.Contains(list, ",") || !isFile(list) {
		return trimmed(strings.Split(list, ","), list)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, &ListError{List: list, Err: err}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return nil, &ListError{List: list, Reason: "not a text in UTF-8"}
	}
	return trimmed(strings.Split(string(text), "\n"), list)
}

// isFile reports whether a list without a comma names a file.
func isFile(list string) bool {
	if strings.ContainsAny(list, `/.`) || strings.ContainsRune(list, filepath.Separator) {
		return true
	}
	st, err := os.Stat(list)
	return err == nil && !st.IsDir()
}

// trimmed trims the words, of which there must be one.
func trimmed(words []string, list string) ([]string, error) {
	var out []string
	for _, w := range words {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return nil, &ListError{List: list, Reason: "it has no word"}
	}
	return out, nil
}
