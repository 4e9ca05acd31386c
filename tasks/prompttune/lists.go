package prompttune

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// readWords reads a word list: a file with a word a line, or words with commas between
// them. What has a comma is words; what else has a path separator or a dot, or is the
// name of a file that is there, is a file. Empty lines of a file are left out, and those
// that begin with #. Errors: *energies.DefinitionError.
func readWords(list string) ([]string, error) {
	if strings.Contains(list, ",") || !isFile(list) {
		return trimmed(strings.Split(list, ","), list)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, badInput("word list "+list, "%v", withoutPath(err))
	}
	lines, ok := lines(text)
	if !ok {
		return nil, badInput("word list "+list, notUTF8)
	}
	return trimmed(lines, list)
}

// What is said of a list that cannot be used.
const (
	notUTF8 = "not a text in UTF-8"
	noWord  = "it has no word"
)

// lines returns the lines of a text that are no comments; ok is false for what is not UTF-8.
func lines(text []byte) (list []string, ok bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list, utf8.Valid(text)
}

// wordsFile is the list of a model's own words, which a model folder may have.
const wordsFile = "words.txt"

// listedWords returns the ids of the words of a model's list that are one token, sorted;
// nil where there is no such file. Others cannot be proposed and are left out, so that a
// list may serve several vocabularies.
func listedWords(fsys fs.FS, v vocabulary) ([]int32, error) {
	text, err := fs.ReadFile(fsys, wordsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, badWords("%w", withoutPath(err))
	}
	words, ok := lines(text)
	if !ok {
		return nil, badWords(notUTF8)
	}
	var ids []int32
	reason := noWord
	for _, w := range words {
		if w == "" {
			continue
		}
		if id, err := v.single(w); err == nil {
			ids = append(ids, id)
		}
		reason = "none of its words is one token of the vocabulary"
	}
	if len(ids) == 0 {
		return nil, badWords(reason)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// badWords reports the word list of a model that cannot be used.
func badWords(format string, args ...any) error {
	return fmt.Errorf(wordsFile+": "+format+"; correct it or delete it: without it every token that is a word is proposed", args...)
}

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
		return nil, badInput("word list "+list, noWord)
	}
	return out, nil
}
