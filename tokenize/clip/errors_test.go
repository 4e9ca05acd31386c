package clip

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/reference"
)

// changed is the fixture "own" after change.
func changed(t *testing.T, change func(file, model map[string]any)) fstest.MapFS {
	t.Helper()
	return reference.Changed(t, read(t, "own.json"), change)
}

// withFile is the fixture "files" with one file replaced, or removed where text is "-".
func withFile(t *testing.T, name, text string) fstest.MapFS {
	t.Helper()
	fsys := fixtureFolder(t, "files")
	if text == "-" {
		delete(fsys, name)
	} else {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestLoadErrors(t *testing.T) {
	object := func(v any) map[string]any { return v.(map[string]any) }
	first := func(v any) map[string]any { return object(v.([]any)[0]) }
	set := func(key string, value any) func(f, m map[string]any) {
		return func(_, m map[string]any) { m[key] = value }
	}
	template := func(sot string, id int) map[string]any {
		token := func(name string) any { return map[string]any{"SpecialToken": map[string]any{"id": name, "type_id": 0}} }
		return map[string]any{
			"type":   "TemplateProcessing",
			"single": []any{token(sot), map[string]any{"Sequence": map[string]any{"id": "A"}}, token(defaultEOT)},
			"special_tokens": map[string]any{
				sot:        map[string]any{"id": sot, "ids": []any{id}},
				defaultEOT: map[string]any{"id": defaultEOT, "ids": []any{3}},
			},
		}
	}
	for name, c := range map[string]struct {
		fsys fs.FS
		want error // nil for fs.ErrNotExist
		text string
	}{
		"empty folder":  {reference.Folder(), nil, "found neither tokenizer.json nor vocab.json"},
		"BERT's text":   {reference.Folder(files.VocabTxt, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"), nil, "found neither tokenizer.json nor vocab.json"},
		"no merges":     {withFile(t, files.MergesTxt, "-"), nil, "neither tokenizer.json nor merges.txt"},
		"BERT's json":   {reference.Folder("tokenizer.json", `{"model":{"type":"WordPiece","vocab":{"a":0}}}`), &tokenize.UnsupportedError{}, `model type "WordPiece", only CLIP's BPE`},
		"sentencepiece": {reference.Folder(files.TokenizerJSON, `{"normalizer":{"type":"Precompiled"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0]]}}`), &tokenize.UnsupportedError{}, `model type "Unigram"`},
		"GPT-2":         {changed(t, set("end_of_word_suffix", nil)), &tokenize.UnsupportedError{}, `end_of_word_suffix "", only CLIP's "</w>"`},
		"byte fallback": {changed(t, set("byte_fallback", true)), &tokenize.UnsupportedError{}, "byte_fallback"},
		"dropout":       {changed(t, set("dropout", 0.1)), &tokenize.UnsupportedError{}, "dropout"},
		"ignore merges": {changed(t, set("ignore_merges", true)), &tokenize.UnsupportedError{}, "ignore_merges"},
		"fused unknown": {changed(t, set("fuse_unk", true)), &tokenize.UnsupportedError{}, "fuse_unk"},
		"prefix":        {changed(t, set("continuing_subword_prefix", "##")), &tokenize.UnsupportedError{}, "continuing_subword_prefix"},
		"normalizer":    {changed(t, func(f, _ map[string]any) { f["normalizer"] = map[string]any{"type": "NFC"} }), &tokenize.UnsupportedError{}, "normalizer other than CLIP's"},
		"no lower case": {changed(t, func(f, _ map[string]any) {
			object(f["normalizer"])["normalizers"].([]any)[2] = map[string]any{"type": "NFC"}
		}), &tokenize.UnsupportedError{}, "normalizer other"},
		"pre-tokenizer": {changed(t, func(f, _ map[string]any) { f["pre_tokenizer"] = map[string]any{"type": "ByteLevel"} }), &tokenize.UnsupportedError{}, "pre_tokenizer other"},
		"word pattern": {changed(t, func(f, _ map[string]any) {
			first(object(f["pre_tokenizer"])["pretokenizers"])["pattern"] = map[string]any{"Regex": ".+|" + wordPattern}
		}), &tokenize.UnsupportedError{}, "pre_tokenizer other"},
		"kept gaps":   {changed(t, func(f, _ map[string]any) { first(object(f["pre_tokenizer"])["pretokenizers"])["invert"] = false }), &tokenize.UnsupportedError{}, "pre_tokenizer other"},
		"stripping":   {changed(t, func(f, _ map[string]any) { first(f["added_tokens"])["rstrip"] = true }), &tokenize.UnsupportedError{}, `added token "<|startoftext|>" with`},
		"no model":    {reference.Folder(files.TokenizerJSON, `{}`), &tokenize.FormatError{}, "no model.vocab"},
		"broken json": {reference.Folder(files.TokenizerJSON, `{"model":`), &tokenize.FormatError{}, "tokenizer.json"},
		"json bytes":  {reference.Folder(files.TokenizerJSON, "{\"\xff\":1}"), &tokenize.FormatError{}, "tokenizer.json: not UTF-8"},
		"vocab list":  {changed(t, set("vocab", []any{1})), &tokenize.FormatError{}, "vocab is not an object"},
		"no unknown":  {changed(t, set("unk_token", "<?>")), &tokenize.FormatError{}, "no <?>"},
		"byte missing": {changed(t, func(_, m map[string]any) {
			m["unk_token"] = nil
			v := object(m["vocab"])
			v["x-"] = v["z</w>"]
			delete(v, "z</w>")
		}), &tokenize.UnsupportedError{}, `no unk_token, and byte 0x7A has no piece "z</w>"`},
		"merge of three": {changed(t, set("merges", []any{"a b c"})), &tokenize.FormatError{}, `merge "a b c" is not two pieces`},
		"merge of one":   {changed(t, set("merges", []any{[]any{"a"}})), &tokenize.FormatError{}, `merge ["a"] is not two pieces`},
		"merge twice":    {changed(t, func(_, m map[string]any) { r := m["merges"].([]any); m["merges"] = append(r, r[0]) }), &tokenize.FormatError{}, "is listed twice"},
		"merge unknown":  {changed(t, set("merges", []any{"q z"})), &tokenize.FormatError{}, `merge "q" "z": vocabulary has no "qz"`},
		"shared id":      {changed(t, func(_, m map[string]any) { object(m["vocab"])["a"] = 0 }), &tokenize.FormatError{}, "has the id 0 of another piece"},
		"gap":            {changed(t, func(_, m map[string]any) { object(m["vocab"])["a"] = 1 << 30 }), &tokenize.FormatError{}, `"a" has id 1073741824`},
		"negative id":    {changed(t, func(_, m map[string]any) { object(m["vocab"])["a"] = -1 }), &tokenize.FormatError{}, `"a" has id -1`},
		"moved special":  {changed(t, func(f, _ map[string]any) { first(f["added_tokens"])["id"] = 3 }), &tokenize.FormatError{}, "<|startoftext|>"},
		"other end":      {changed(t, func(f, _ map[string]any) { object(f["post_processor"])["sep"] = []any{defaultEOT, 3} }), &tokenize.FormatError{}, `"<|endoftext|>" is listed twice`},
		"foreign end":    {changed(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = []any{"[CLS]", 3} }), &tokenize.FormatError{}, "no [CLS]"},
		"one end":        {changed(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = object(f["post_processor"])["sep"] }), &tokenize.FormatError{}, "both starts and ends a text"},
		"broken end":     {changed(t, func(f, _ map[string]any) { object(f["post_processor"])["cls"] = []any{"[CLS]"} }), &tokenize.FormatError{}, "not a name and an id"},
		"template":       {changed(t, func(f, _ map[string]any) { f["post_processor"] = template("[CLS]", 3) }), &tokenize.FormatError{}, "no [CLS]"},
		"template id":    {changed(t, func(f, _ map[string]any) { f["post_processor"] = template(defaultSOT, 3) }), &tokenize.FormatError{}, defaultSOT},
		"short template": {changed(t, func(f, _ map[string]any) { f["post_processor"] = map[string]any{"type": "TemplateProcessing"} }), &tokenize.UnsupportedError{}, "post_processor other"},
		"merges line":    {withFile(t, files.MergesTxt, "#version\nt h\nthe\n"), &tokenize.FormatError{}, `merges.txt:3: merge "the" is not two pieces`},
		"merges bytes":   {withFile(t, files.MergesTxt, "#version\nt \xff\n"), &tokenize.FormatError{}, "merges.txt:2: not UTF-8"},
		"merges unknown": {withFile(t, files.MergesTxt, "q z\n"), &tokenize.FormatError{}, `merges.txt: merge "q" "z"`},
		"no ends":        {withFile(t, files.VocabJSON, `{"a":0}`), &tokenize.FormatError{}, "vocab.json: vocabulary has no <|startoftext|>"},
		"vocab twice":    {withFile(t, files.VocabJSON, `{"a":0,"a":1}`), &tokenize.FormatError{}, `vocab.json: "a"`},
		"pad":            {withFile(t, files.TokenizerConfig, `{"pad_token": "[PAD]"}`), &tokenize.FormatError{}, "no [PAD]"},
	} {
		b, err := Load(c.fsys)
		if b != nil {
			t.Errorf("%s: a tokenizer beside the error", name)
		}
		reference.CheckError(t, name, err, c.want, c.text)
	}
}

// TestOtherForms loads what means the same in other spellings.
func TestOtherForms(t *testing.T) {
	ref := loadFixture(t)
	crlf := fixtureFolder(t, "files")
	crlf[files.MergesTxt].Data = []byte(strings.ReplaceAll(string(crlf[files.MergesTxt].Data), "\n", "\r\n"))
	for name, c := range map[string]struct {
		fsys  fs.FS
		cases string
	}{
		"merges in one string": {changed(t, func(_, m map[string]any) {
			for i, r := range m["merges"].([]any) {
				m["merges"].([]any)[i] = r.([]any)[0].(string) + " " + r.([]any)[1].(string)
			}
		}), "own"},
		"type left out":     {changed(t, func(_, m map[string]any) { delete(m, "type") }), "own"},
		"no post-processor": {changed(t, func(f, _ map[string]any) { f["post_processor"] = nil }), "own"},
		"CRLF":              {crlf, "files"},
		"named in settings": {withFile(t, files.TokenizerConfig, `{"bos_token": {"content": "<|startoftext|>"}, "eos_token": "<|endoftext|>", "pad_token": "!"}`), "files"},
	} {
		tok := mustLoad(t, c.fsys)
		for _, k := range ref.Cases[c.cases] {
			if diff := reference.Compare(tok, k); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if pad := map[bool]string{true: "!", false: defaultEOT}[name == "named in settings"]; tok.Piece(tok.Pad) != pad {
			t.Errorf("%s: Pad is %q", name, tok.Piece(tok.Pad))
		}
	}
}

func TestEncodingError(t *testing.T) {
	c := fixtureTokenizer(t)
	for text, offset := range map[string]int{"\xff": 0, "ab\xc3": 2, "é\xed\xa0\x80": 2, "\ufffd\x80": 3} {
		var e *tokenize.EncodingError
		if _, err := c.Encode(text); !errors.As(err, &e) || e.Offset != offset {
			t.Errorf("%q: %v, want offset %d", text, err, offset)
		}
	}
}
