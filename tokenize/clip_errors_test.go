package tokenize

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// changedCLIP is the fixture "own" after change.
func changedCLIP(t *testing.T, change func(file, model map[string]any)) fstest.MapFS {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(readCLIP(t, "own.json"), &file); err != nil {
		t.Fatal(err)
	}
	change(file, file["model"].(map[string]any))
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{tokenizerFile: {Data: data}}
}

// withFile is the fixture "files" with one file replaced, or removed where text is "-".
func withFile(t *testing.T, name, text string) fs.FS {
	t.Helper()
	fsys := clipFolder(t, "files")
	if text == "-" {
		delete(fsys, name)
	} else {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestLoadCLIPErrors(t *testing.T) {
	object := func(v any) map[string]any { return v.(map[string]any) }
	first := func(v any) map[string]any { return object(v.([]any)[0]) }
	set := func(key string, value any) func(f, m map[string]any) {
		return func(_, m map[string]any) { m[key] = value }
	}
	template := func(sot string, id int) map[string]any {
		token := func(name string) any { return map[string]any{"SpecialToken": map[string]any{"id": name, "type_id": 0}} }
		return map[string]any{
			"type":   "TemplateProcessing",
			"single": []any{token(sot), map[string]any{"Sequence": map[string]any{"id": "A"}}, token(clipEOT)},
			"special_tokens": map[string]any{
				sot:     map[string]any{"id": sot, "ids": []any{id}},
				clipEOT: map[string]any{"id": clipEOT, "ids": []any{3}},
			},
		}
	}
	for name, c := range map[string]struct {
		fsys fs.FS
		want any    // a pointer of the error's type
		text string // the error must contain it
	}{
		"empty folder":  {folder(), &MissingFileError{}, "found neither tokenizer.json nor vocab.json"},
		"BERT's text":   {folder(vocabFile, fiveSpecials), &MissingFileError{}, "found neither tokenizer.json nor vocab.json"},
		"no merges":     {withFile(t, mergesFile, "-"), &MissingFileError{}, "neither tokenizer.json nor merges.txt"},
		"BERT's json":   {os.DirFS("testdata/bert"), &UnsupportedError{}, `model type "WordPiece", only CLIP's BPE`},
		"sentencepiece": {folder(tokenizerFile, `{"normalizer":{"type":"Precompiled"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0]]}}`), &UnsupportedError{}, `model type "Unigram"`},
		"GPT-2":         {changedCLIP(t, set("end_of_word_suffix", nil)), &UnsupportedError{}, `end_of_word_suffix "", only CLIP's "</w>"`},
		"byte fallback": {changedCLIP(t, set("byte_fallback", true)), &UnsupportedError{}, "byte_fallback"},
		"dropout":       {changedCLIP(t, set("dropout", 0.1)), &UnsupportedError{}, "dropout"},
		"ignore merges": {changedCLIP(t, set("ignore_merges", true)), &UnsupportedError{}, "ignore_merges"},
		"fused unknown": {changedCLIP(t, set("fuse_unk", true)), &UnsupportedError{}, "fuse_unk"},
		"prefix":        {changedCLIP(t, set("continuing_subword_prefix", "##")), &UnsupportedError{}, "continuing_subword_prefix"},
		"normalizer":    {changedCLIP(t, func(f, _ map[string]any) { f["normalizer"] = map[string]any{"type": "NFC"} }), &UnsupportedError{}, "normalizer other than CLIP's"},
		"no lower case": {changedCLIP(t, func(f, _ map[string]any) {
			object(f["normalizer"])["normalizers"].([]any)[2] = map[string]any{"type": "NFC"}
		}), &UnsupportedError{}, "normalizer other"},
		"pre-tokenizer": {changedCLIP(t, func(f, _ map[string]any) { f["pre_tokenizer"] = map[string]any{"type": "ByteLevel"} }), &UnsupportedError{}, "pre_tokenizer other"},
		"word pattern": {changedCLIP(t, func(f, _ map[string]any) {
			first(object(f["pre_tokenizer"])["pretokenizers"])["pattern"] = map[string]any{"Regex": ".+|" + wordPattern}
		}), &UnsupportedError{}, "pre_tokenizer other"},
		"kept gaps":   {changedCLIP(t, func(f, _ map[string]any) { first(object(f["pre_tokenizer"])["pretokenizers"])["invert"] = false }), &UnsupportedError{}, "pre_tokenizer other"},
		"stripping":   {changedCLIP(t, func(f, _ map[string]any) { first(f["added_tokens"])["rstrip"] = true }), &UnsupportedError{}, `added token "<|startoftext|>" with`},
		"no model":    {folder(tokenizerFile, `{}`), &FormatError{}, "no model.vocab"},
		"broken json": {folder(tokenizerFile, `{"model":`), &FormatError{}, "tokenizer.json"},
		"json bytes":  {folder(tokenizerFile, "{\"\xff\":1}"), &FormatError{}, "tokenizer.json: not UTF-8"},
		"vocab list":  {changedCLIP(t, set("vocab", []any{1})), &FormatError{}, "vocab is not an object"},
		"no unknown":  {changedCLIP(t, set("unk_token", "<?>")), &MissingPieceError{}, "no <?>"},
		"byte missing": {changedCLIP(t, func(_, m map[string]any) {
			m["unk_token"] = nil
			v := object(m["vocab"])
			v["x-"] = v["z</w>"]
			delete(v, "z</w>")
		}), &UnsupportedError{}, `no unk_token, and byte 0x7A has no piece "z</w>"`},
		"merge of three": {changedCLIP(t, set("merges", []any{"a b c"})), &FormatError{}, `merge "a b c" is not two pieces`},
		"merge of one":   {changedCLIP(t, set("merges", []any{[]any{"a"}})), &FormatError{}, `merge ["a"] is not two pieces`},
		"merge twice":    {changedCLIP(t, func(_, m map[string]any) { r := m["merges"].([]any); m["merges"] = append(r, r[0]) }), &FormatError{}, "is listed twice"},
		"merge unknown":  {changedCLIP(t, set("merges", []any{"q z"})), &FormatError{}, `merge "q" "z": vocabulary has no "qz"`},
		"shared id":      {changedCLIP(t, func(_, m map[string]any) { object(m["vocab"])["a"] = 0 }), &DuplicateError{}, "has the id 0 of another piece"},
		"gap":            {changedCLIP(t, func(_, m map[string]any) { object(m["vocab"])["a"] = 1 << 30 }), &FormatError{}, `"a" has id 1073741824`},
		"negative id":    {changedCLIP(t, func(_, m map[string]any) { object(m["vocab"])["a"] = -1 }), &FormatError{}, `"a" has id -1`},
		"moved special":  {changedCLIP(t, func(f, _ map[string]any) { first(f["added_tokens"])["id"] = 3 }), &DuplicateError{}, "<|startoftext|>"},
		"other end":      {changedCLIP(t, func(f, _ map[string]any) { object(f["post_processor"])["sep"] = []any{clipEOT, 3} }), &DuplicateError{}, `"<|endoftext|>" is listed twice`},
		"foreign end":    {changedCLIP(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = []any{"[CLS]", 3} }), &MissingPieceError{}, "no [CLS]"},
		"one end":        {changedCLIP(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = object(f["post_processor"])["sep"] }), &FormatError{}, "both starts and ends a text"},
		"broken end":     {changedCLIP(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = []any{"[CLS]"} }), &FormatError{}, "not a name and an id"},
		"template":       {changedCLIP(t, func(f, _ map[string]any) { f["post_processor"] = template("[CLS]", 3) }), &MissingPieceError{}, "no [CLS]"},
		"template id":    {changedCLIP(t, func(f, _ map[string]any) { f["post_processor"] = template(clipSOT, 3) }), &DuplicateError{}, clipSOT},
		"short template": {changedCLIP(t, func(f, _ map[string]any) { f["post_processor"] = map[string]any{"type": "TemplateProcessing"} }), &UnsupportedError{}, "post_processor other"},
		"merges line":    {withFile(t, mergesFile, "#version\nt h\nthe\n"), &FormatError{}, `merges.txt:3: merge "the" is not two pieces`},
		"merges bytes":   {withFile(t, mergesFile, "#version\nt \xff\n"), &FormatError{}, "merges.txt:2: not UTF-8"},
		"merges unknown": {withFile(t, mergesFile, "q z\n"), &FormatError{}, `merges.txt: merge "q" "z"`},
		"no ends":        {withFile(t, vocabJSONFile, `{"a":0}`), &MissingPieceError{}, "vocab.json: vocabulary has no <|startoftext|>"},
		"vocab twice":    {withFile(t, vocabJSONFile, `{"a":0,"a":1}`), &DuplicateError{}, `vocab.json: "a"`},
		"pad":            {withFile(t, settingsFile, `{"pad_token": "[PAD]"}`), &MissingPieceError{}, "no [PAD]"},
	} {
		b, err := LoadCLIP(c.fsys)
		switch {
		case err == nil:
			t.Errorf("%s: no error", name)
		case b != nil:
			t.Errorf("%s: a tokenizer beside the error", name)
		case reflect.TypeOf(err) != reflect.TypeOf(c.want):
			t.Errorf("%s: %T %v, want %T", name, err, err, c.want)
		case !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %q does not say %q in one line", name, err, c.text)
		}
	}
}

// TestBERTRefusesCLIP is the other direction: CLIP's files where BERT's are needed.
func TestBERTRefusesCLIP(t *testing.T) {
	var u *UnsupportedError
	if _, err := LoadBERT(clipFolder(t, "own")); !errors.As(err, &u) || !strings.Contains(err.Error(), `model type "BPE"`) {
		t.Errorf("tokenizer.json: %v", err)
	}
	if _, err := LoadBERT(clipFolder(t, "files")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("vocab.json: %v", err)
	}
	if _, err := LoadCLIP(clipFolder(t, "files")); err != nil {
		t.Error(err)
	}
}

// TestCLIPOtherForms loads what means the same in other spellings.
func TestCLIPOtherForms(t *testing.T) {
	ref := loadCLIPReference(t)
	crlf := clipFolder(t, "files")
	crlf[mergesFile].Data = []byte(strings.ReplaceAll(string(crlf[mergesFile].Data), "\n", "\r\n"))
	for name, c := range map[string]struct {
		fsys  fs.FS
		cases string
	}{
		"merges in one string": {changedCLIP(t, func(_, m map[string]any) {
			for i, r := range m["merges"].([]any) {
				m["merges"].([]any)[i] = r.([]any)[0].(string) + " " + r.([]any)[1].(string)
			}
		}), "own"},
		"type left out":     {changedCLIP(t, func(_, m map[string]any) { delete(m, "type") }), "own"},
		"no post-processor": {changedCLIP(t, func(f, _ map[string]any) { f["post_processor"] = nil }), "own"},
		"CRLF":              {crlf, "files"},
		"named in settings": {withFile(t, settingsFile, `{"bos_token": {"content": "<|startoftext|>"}, "eos_token": "<|endoftext|>", "pad_token": "!"}`), "files"},
	} {
		tok := mustLoadCLIP(t, c.fsys)
		for _, k := range ref.Cases[c.cases] {
			if diff := compareFull(tok, k); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if pad := map[bool]string{true: "!", false: clipEOT}[name == "named in settings"]; tok.Piece(tok.Pad) != pad {
			t.Errorf("%s: Pad is %q", name, tok.Piece(tok.Pad))
		}
	}
}

func TestCLIPEncodingError(t *testing.T) {
	c := fixtureCLIP(t)
	for text, offset := range map[string]int{"\xff": 0, "ab\xc3": 2, "é\xed\xa0\x80": 2, "\ufffd\x80": 3} {
		var e *EncodingError
		if _, err := c.Encode(text); !errors.As(err, &e) || e.Offset != offset {
			t.Errorf("%q: %v, want offset %d", text, err, offset)
		}
	}
}
