package bert

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sugarme/tokenizer/model/wordpiece"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/reference"
)

const fiveSpecials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

// brokenJSON is the fixture's tokenizer.json after change.
func brokenJSON(t *testing.T, change func(file, model map[string]any)) fstest.MapFS {
	return reference.Changed(t, read(t, "tokenizer.json"), change)
}

func TestLoadErrors(t *testing.T) {
	whole := string(read(t, files.TokenizerJSON))
	for name, c := range map[string]struct {
		fsys fs.FS
		want error // nil for fs.ErrNotExist
		text string
	}{
		"empty folder":       {reference.Folder(), nil, "found neither tokenizer.json nor vocab.txt"},
		"no mask":            {reference.Folder(files.VocabTxt, "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"), &tokenize.FormatError{}, "vocab.txt: vocabulary has no [MASK]"},
		"no unknown":         {reference.Folder(files.VocabTxt, "[PAD]\n[MASK]\n[CLS]\n[SEP]\na\n"), &tokenize.FormatError{}, "no [UNK]"},
		"no pad":             {reference.Folder(files.VocabTxt, "[UNK]\n[MASK]\n[CLS]\n[SEP]\na\n"), &tokenize.FormatError{}, "no [PAD]"},
		"duplicate line":     {reference.Folder(files.VocabTxt, fiveSpecials+"a\nb\na\n"), &tokenize.FormatError{}, `"a" is listed twice, as 5 and 7`},
		"duplicate blank":    {reference.Folder(files.VocabTxt, fiveSpecials+"\n\n"), &tokenize.FormatError{}, `"" is listed twice`},
		"empty vocabulary":   {reference.Folder(files.VocabTxt, "\n"), &tokenize.FormatError{}, "vocab.txt: file is empty"},
		"vocabulary bytes":   {reference.Folder(files.VocabTxt, fiveSpecials+"\xff\n"), &tokenize.FormatError{}, "vocab.txt:6: not UTF-8"},
		"json bytes":         {reference.Folder(files.TokenizerJSON, "{\"\xff\":1}"), &tokenize.FormatError{}, "tokenizer.json: not UTF-8"},
		"truncated json":     {reference.Folder(files.TokenizerJSON, whole[:len(whole)/2]), &tokenize.FormatError{}, "tokenizer.json: unexpected end"},
		"empty json":         {reference.Folder(files.TokenizerJSON, ""), &tokenize.FormatError{}, "tokenizer.json: "},
		"json of wrong kind": {reference.Folder(files.TokenizerJSON, "[]"), &tokenize.FormatError{}, "tokenizer.json: "},
		"json without model": {reference.Folder(files.TokenizerJSON, "{}"), &tokenize.FormatError{}, "no model.vocab"},
		"settings":           {reference.Folder(files.VocabTxt, fiveSpecials, files.TokenizerConfig, `{"do_lower_case": "yes"}`), &tokenize.FormatError{}, "tokenizer_config.json: "},
		"model settings":     {reference.Folder(files.VocabTxt, fiveSpecials, files.Config, `{`), &tokenize.FormatError{}, "config.json: "},
		"BPE": {brokenJSON(t, func(_, m map[string]any) { m["type"] = "BPE" }),
			&tokenize.UnsupportedError{}, `tokenizer.json: unsupported: model type "BPE", only WordPiece`},
		"BPE unnamed": {brokenJSON(t, func(_, m map[string]any) { delete(m, "type"); m["merges"] = []string{"a b"} }),
			&tokenize.UnsupportedError{}, `model type "BPE"`},
		"Unigram unnamed": {reference.Folder(files.TokenizerJSON, `{"model": {"unk_id": 0, "vocab": [["a", 0.5]]}}`), &tokenize.UnsupportedError{}, `"Unigram"`},
		"WordLevel":       {reference.Folder(files.TokenizerJSON, `{"model": {"unk_token": "u", "vocab": {"u": 0}}}`), &tokenize.UnsupportedError{}, `"WordLevel"`},
		"vocab is a list": {brokenJSON(t, func(_, m map[string]any) { m["vocab"] = []string{"a"} }),
			&tokenize.FormatError{}, "vocab is not an object"},
		"id is a word": {brokenJSON(t, func(_, m map[string]any) { m["vocab"].(map[string]any)["a"] = "b" }),
			&tokenize.FormatError{}, "cannot unmarshal"},
		"duplicate key": {reference.Folder(files.TokenizerJSON, strings.Replace(whole, `"vocab":{`, `"vocab":{"[PAD]":0,`, 1)),
			&tokenize.FormatError{}, `"[PAD]"`},
		"shared id": {brokenJSON(t, func(_, m map[string]any) { m["vocab"].(map[string]any)["a"] = 0 }),
			&tokenize.FormatError{}, "has the id 0 of another piece"},
		"gap": {brokenJSON(t, func(_, m map[string]any) { m["vocab"].(map[string]any)["a"] = 1 << 30 }),
			&tokenize.FormatError{}, `"a" has id 1073741824 in a vocabulary of`},
		"negative id": {brokenJSON(t, func(_, m map[string]any) { m["vocab"].(map[string]any)["a"] = -1 }),
			&tokenize.FormatError{}, `"a" has id -1`},
		"moved added token": {brokenJSON(t, func(f, _ map[string]any) { f["added_tokens"].([]any)[4].(map[string]any)["id"] = 3 }),
			&tokenize.FormatError{}, `"[MASK]" is listed twice, as 4 and 3`},
		"added token without content": {brokenJSON(t, func(f, _ map[string]any) { f["added_tokens"].([]any)[4].(map[string]any)["content"] = "" }),
			&tokenize.FormatError{}, "added token without content"},
		"added token that strips": {brokenJSON(t, func(f, _ map[string]any) { f["added_tokens"].([]any)[4].(map[string]any)["lstrip"] = true }),
			&tokenize.UnsupportedError{}, `added token "[MASK]" with`},
		"no prefix": {brokenJSON(t, func(_, m map[string]any) { m["continuing_subword_prefix"] = "" }),
			&tokenize.UnsupportedError{}, "empty continuing_subword_prefix"},
		"normalizer": {brokenJSON(t, func(f, _ map[string]any) { f["normalizer"] = map[string]any{"type": "NFKC"} }),
			&tokenize.UnsupportedError{}, "normalizer other"},
		"pre-tokenizer": {brokenJSON(t, func(f, _ map[string]any) { f["pre_tokenizer"] = nil }),
			&tokenize.UnsupportedError{}, "pre_tokenizer other"},
	} {
		b, err := Load(c.fsys)
		if b != nil {
			t.Errorf("%s: a tokenizer beside the error", name)
		}
		reference.CheckError(t, name, err, c.want, c.text)
	}
}

func TestMissingFileIsNotExist(t *testing.T) {
	if _, err := Load(os.DirFS(t.TempDir())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	// A folder that cannot be read is another matter.
	if _, err := Load(reference.Folder(files.VocabTxt+"/x", "")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("vocab.txt as a folder: %v", err)
	}
}

func TestEncodingError(t *testing.T) {
	b := fixtureTokenizer(t)
	for text, offset := range map[string]int{"\xff": 0, "ab\xc3": 2, "é\xed\xa0\x80": 2, "\ufffd\x80": 3} {
		var e *tokenize.EncodingError
		if _, err := b.Encode(text); !errors.As(err, &e) || e.Offset != offset {
			t.Errorf("%q: %v, want offset %d", text, err, offset)
		}
	}
}

// TestPanicBecomesError gives the piece splitter a model without any tables, which panics.
func TestPanicBecomesError(t *testing.T) {
	b := fixtureTokenizer(t)
	b.pieces = pieces{wordpiece.WordPiece{}}
	if tokens, err := b.Encode("word"); err == nil || !strings.Contains(err.Error(), `splitting "word": panic`) || tokens != nil {
		t.Errorf("got %v, %v", tokens, err)
	}
}
