package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// Item is a sentence of a task file.
type Item struct {
	// Original is the sentence before masking.
	Original string `json:"gt_sentence"`
	// Sentence has [MASK] for every word to fill.
	Sentence string `json:"sentence"`
	// Positions are the indices of the masked tokens, [CLS] included, in the vocabulary of the task's
	// authors. Other vocabularies split words differently, so only their number is used, as a check.
	Positions []int `json:"infill_pos"`
}

// maskWord is a blank in task files, independent of the model's mask token.
const maskWord = "[MASK]"

// ReadTask reads a task file: a JSON array of objects with gt_sentence, sentence and infill_pos; other
// fields are ignored. It also returns the contents of the file. Errors are *FileError.
func ReadTask(path string) (items []Item, data []byte, err error) {
	data, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	items, bad := parseTask(data)
	if bad != nil {
		bad.Path = path
		return nil, nil, bad
	}
	return items, data, nil
}

func parseTask(data []byte) ([]Item, *FileError) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, &FileError{Line: lineAt(data, at), Err: errors.New("not UTF-8")}
	}
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, jsonError(data, "", err)
	}
	if len(raw) == 0 {
		return nil, &FileError{Err: errors.New("no sentences")}
	}
	items := make([]Item, len(raw))
	for k, fields := range raw {
		it := &items[k]
		for _, f := range []struct {
			name string
			to   any
		}{{"gt_sentence", &it.Original}, {"sentence", &it.Sentence}, {"infill_pos", &it.Positions}} {
			value, there := fields[f.name]
			if !there || string(value) == "null" {
				return nil, &FileError{Where: where(k, f.name), Err: errors.New("missing")}
			}
			if err := json.Unmarshal(value, f.to); err != nil {
				return nil, jsonError(nil, where(k, f.name), err)
			}
		}
		if n := strings.Count(it.Sentence, maskWord); n != len(it.Positions) {
			return nil, &FileError{Where: where(k, "infill_pos"), Err: maskCount(n, len(it.Positions))}
		} else if n == 0 {
			return nil, &FileError{Where: where(k, "sentence"), Err: fmt.Errorf("no %s: nothing to fill", maskWord)}
		}
	}
	return items, nil
}

func where(sentence int, field string) string { return fmt.Sprintf("sentence %d: %s", sentence, field) }

// maskCount returns the error for a sentence with different numbers of [MASK] and infill_pos.
func maskCount(masks, positions int) error {
	return fmt.Errorf("the sentence has %d [MASK], but infill_pos has %d positions", masks, positions)
}

// jsonError adds the position to an error of encoding/json. data is the file, or nil if err concerns a
// single field, named by where.
func jsonError(data []byte, where string, err error) *FileError {
	e := &FileError{Where: where, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		e.Err = fmt.Errorf("got a JSON %s, want %s", kind.Value, wanted(where))
	}
	if data != nil && offset >= 0 {
		e.Line = lineAt(data, int(offset)-1)
	}
	return e
}

func wanted(where string) string {
	if where == "" {
		return "an array of objects"
	}
	return "a text (gt_sentence, sentence) or whole numbers (infill_pos)"
}

// lineAt returns the line of byte offset at, from 1.
func lineAt(data []byte, at int) int {
	return 1 + bytes.Count(data[:min(max(at, 0), len(data))], []byte("\n"))
}

func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return -1
}
