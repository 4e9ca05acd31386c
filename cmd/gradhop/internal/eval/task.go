package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// Item is a sentence of a task file.
type Item struct {
	// Original is the sentence before words were masked.
	Original string `json:"gt_sentence"`
	// Sentence has [MASK] for every word to fill.
	Sentence string `json:"sentence"`
	// Positions are the masked tokens, [CLS] included, in the vocabulary that the task
	// was made with. Other vocabularies split words elsewhere, so only their number is
	// used: as a check.
	Positions []int `json:"infill_pos"`
}

// TaskError reports a task file that is not in the form that eval infill reads.
type TaskError struct {
	Path string
	// Line is where the file stops being JSON of that form, from 1; 0 where that is
	// not known.
	Line int
	// Item is the number of the sentence, from 0; -1 where no single one is at fault.
	Item int
	// Field is the JSON name at fault, or "".
	Field string
	Err   error
}

func (e *TaskError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Item >= 0 {
		s += fmt.Sprintf(": sentence %d", e.Item)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// MaskCountError reports a sentence whose [MASK]s and infill_pos differ in number.
type MaskCountError struct{ Masks, Positions int }

func (e *MaskCountError) Error() string {
	return fmt.Sprintf("the sentence has %d [MASK], infill_pos has %d positions", e.Masks, e.Positions)
}

// maskWord is how task files spell a blank, whatever the model's own spelling.
const maskWord = "[MASK]"

// ReadTask reads a task file: a JSON array of objects with gt_sentence, sentence and
// infill_pos; other fields are left alone. Errors are *app.Error around a
// *TaskError (or a *FileError where the file cannot be read).
func ReadTask(path string) (items []Item, data []byte, err error) {
	data, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, usage(path, err)
	}
	items, bad := parseTask(data)
	if bad != nil {
		bad.Path = path
		return nil, nil, app.Usage(bad)
	}
	return items, data, nil
}

func parseTask(data []byte) ([]Item, *TaskError) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, &TaskError{Line: lineAt(data, at), Item: -1, Err: errors.New("not UTF-8")}
	}
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, jsonError(data, -1, "", err)
	}
	if len(raw) == 0 {
		return nil, &TaskError{Item: -1, Err: errors.New("no sentences")}
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
				return nil, &TaskError{Item: k, Field: f.name, Err: errors.New("missing")}
			}
			if err := json.Unmarshal(value, f.to); err != nil {
				return nil, jsonError(nil, k, f.name, err)
			}
		}
		if n := strings.Count(it.Sentence, maskWord); n != len(it.Positions) {
			return nil, &TaskError{Item: k, Field: "infill_pos", Err: &MaskCountError{n, len(it.Positions)}}
		} else if n == 0 {
			return nil, &TaskError{Item: k, Field: "sentence", Err: fmt.Errorf("no %s: nothing to fill", maskWord)}
		}
	}
	return items, nil
}

// jsonError places an error of encoding/json. data is the file, nil where err is of one
// field.
func jsonError(data []byte, item int, field string, err error) *TaskError {
	e := &TaskError{Item: item, Field: field, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		e.Err = fmt.Errorf("got a JSON %s, want %s", kind.Value, wanted(item))
	}
	if data != nil && offset >= 0 {
		e.Line = lineAt(data, int(offset)-1)
	}
	return e
}

func wanted(item int) string {
	if item < 0 {
		return "an array of objects"
	}
	return "a text (gt_sentence, sentence) or whole numbers (infill_pos)"
}

// lineAt is the line of byte offset at, from 1.
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
