package bert

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/reference"
)

func fixtureTokenizer(t testing.TB) *Tokenizer { return mustLoad(t, os.DirFS("testdata")) }

// vocabOnly is the fixture as a folder with vocab.txt and further files.
func vocabOnly(t testing.TB, extra map[string]string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{files.VocabTxt: {Data: read(t, files.VocabTxt)}}
	for name, text := range extra {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestVocabularyFilesAgree(t *testing.T) {
	a, b := fixtureTokenizer(t), mustLoad(t, vocabOnly(t, nil))
	if a.Size() != b.Size() || !reflect.DeepEqual(a.list, b.list) {
		t.Errorf("tokenizer.json and vocab.txt give different vocabularies")
	}
	for _, c := range loadReference(t).Cases["uncased"] {
		if diff := reference.Compare(b, c); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSettingsFile(t *testing.T) {
	ref := loadReference(t)
	for _, c := range []struct{ setting, file string }{
		{"uncased", `{}`},
		{"uncased", `{"do_lower_case": true, "strip_accents": null, "tokenize_chinese_chars": true}`},
		{"cased", `{"do_lower_case": false}`},
		{"cased_stripped", `{"do_lower_case": false, "strip_accents": true}`},
		{"lower_accents", `{"strip_accents": false}`},
		{"whole_cjk", `{"tokenize_chinese_chars": false}`},
	} {
		// The same settings must win over those of either vocabulary file.
		opposite := withNormalizer(t, map[string]any{"strip_accents": nil})
		opposite.(fstest.MapFS)[files.TokenizerConfig] = &fstest.MapFile{Data: []byte(c.file)}
		for _, fsys := range []fs.FS{vocabOnly(t, map[string]string{files.TokenizerConfig: c.file}), opposite} {
			b := mustLoad(t, fsys)
			for _, k := range ref.Cases[c.setting] {
				if diff := reference.Compare(b, k); diff != "" {
					t.Fatalf("%s: %s", c.file, diff)
				}
			}
		}
	}
	null := withNormalizer(t, map[string]any{"strip_accents": false}).(fstest.MapFS)
	null[files.TokenizerConfig] = &fstest.MapFile{Data: []byte(`{"strip_accents": null}`)}
	if b := mustLoad(t, null); !b.normalizer.stripAccents {
		t.Error("null in tokenizer_config.json does not override false in tokenizer.json")
	}
}

func TestMaxLen(t *testing.T) {
	for _, c := range []struct {
		settings, model string
		want            int
	}{
		{`{}`, `{}`, 0},
		{`{"model_max_length": 1000000000000000019884624838656}`, `{}`, 0},
		{`{"model_max_length": 512}`, `{}`, 512},
		{`{"model_max_length": 1e30}`, `{"max_position_embeddings": 128}`, 128},
		{`{"model_max_length": 64}`, `{"max_position_embeddings": 128}`, 64},
	} {
		b := mustLoad(t, vocabOnly(t, map[string]string{files.TokenizerConfig: c.settings, files.Config: c.model}))
		if b.MaxLen != c.want {
			t.Errorf("%s %s: MaxLen %d, want %d", c.settings, c.model, b.MaxLen, c.want)
		}
	}
}

func TestIDs(t *testing.T) {
	b := fixtureTokenizer(t)
	if b.Pad != 0 || b.Unk != 1 || b.CLS != 2 || b.SEP != 3 || b.Mask != 4 {
		t.Errorf("special ids %d %d %d %d %d", b.Pad, b.Unk, b.CLS, b.SEP, b.Mask)
	}
	if want := strings.Count(string(read(t, files.VocabTxt)), "\n"); b.Size() != want {
		t.Errorf("Size %d, want %d", b.Size(), want)
	}
	for id := range int32(b.Size()) {
		p := b.Piece(id)
		if back, ok := b.ID(p); !ok || back != id {
			t.Errorf("ID(%q) = %d, %v, want %d", p, back, ok, id)
		}
		if b.IsContinuation(id) != strings.HasPrefix(p, "##") || b.IsSpecial(id) != (id < 5) || b.IsUnused(id) != (id == 5 || id == 6) {
			t.Errorf("%q is misjudged", p)
		}
	}
	for _, id := range []int32{-1, int32(b.Size()), 1 << 30} {
		if b.Piece(id) != "" || b.IsContinuation(id) || b.IsSpecial(id) || b.IsUnused(id) {
			t.Errorf("%d is out of range and not nothing", id)
		}
	}
	if _, ok := b.ID("no such piece"); ok {
		t.Error("unknown piece found")
	}
	for _, p := range []string{"[unused]", "[unused1", "unused1]", "[unusedx]", "[unused1x]"} {
		if isUnused(p) {
			t.Errorf("%q counts as unused", p)
		}
	}
}

func TestSpecialFlag(t *testing.T) {
	tokens, err := fixtureTokenizer(t).Encode("a [UNK] 😀[MASK]")
	if err != nil {
		t.Fatal(err)
	}
	want := []bool{false, true, false, true} // the emoji is unknown, which is no special token
	for i, k := range tokens {
		if k.Special != want[i] {
			t.Errorf("token %d: %+v", i, k)
		}
	}
}

// TestOtherNames loads a vocabulary whose special tokens have other spellings, one of them an added
// token beyond the model's own vocabulary.
func TestOtherNames(t *testing.T) {
	fsys := withTokenizerJSON(t, func(file map[string]any) {
		model := file["model"].(map[string]any)
		vocab := model["vocab"].(map[string]any)
		for _, name := range []string{"PAD", "UNK", "CLS", "SEP", "MASK"} {
			vocab["<"+strings.ToLower(name)+">"] = vocab["["+name+"]"]
			delete(vocab, "["+name+"]")
		}
		model["unk_token"] = "<unk>"
		file["added_tokens"] = []any{map[string]any{"id": len(vocab), "content": "<new>", "special": false}}
	})
	fsys[files.TokenizerConfig] = &fstest.MapFile{Data: []byte(
		`{"cls_token": "<cls>", "sep_token": {"content": "<sep>"}, "mask_token": "<mask>", "pad_token": "<pad>", "unk_token": null}`)}
	b := mustLoad(t, fsys)
	tokens, err := b.Encode("x<mask><new>[MASK]")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range tokens {
		got = append(got, fmt.Sprint(b.Piece(k.ID), k.Start, k.End, k.Special))
	}
	want := []string{"x0 1 false", "<mask>1 7 true", "<new>7 12 false", "[12 13 false"}
	if !reflect.DeepEqual(got[:4], want) {
		t.Errorf("got %v, want %v and pieces of [MASK]", got, want)
	}
	if text := b.Decode([]int32{b.CLS, tokens[0].ID, b.Mask, tokens[2].ID}); text != "x <new>" {
		t.Errorf("Decode gives %q", text)
	}
}

func TestRoundTrip(t *testing.T) {
	b := fixtureTokenizer(t)
	var ids []int32
	for _, p := range []string{"the", "end"} {
		id, _ := b.ID(p)
		ids = append(ids, id)
	}
	if text, same := tokenize.RoundTrip(b, ids); !same || text != "the end" {
		t.Errorf("%q %v", text, same)
	}
}

func FuzzEncode(f *testing.F) {
	for _, c := range loadReference(f).Cases["uncased"] {
		f.Add(c.Text)
	}
	f.Add("a\xffb")
	b := fixtureTokenizer(f)
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := b.Encode(text)
		if !utf8.ValidString(text) {
			if err == nil {
				t.Fatal("text is not UTF-8 and was taken")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		boundary := func(i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
		start, end := 0, 0
		ids := make([]int32, len(tokens))
		for i, k := range tokens {
			// Starts and ends may stay, never fall: one character can give several tokens.
			if k.Start < start || k.End < end || k.Start >= k.End || k.End > len(text) || !boundary(k.Start) || !boundary(k.End) {
				t.Fatalf("%+q: token %d is %+v after [%d,%d)", text, i, k, start, end)
			}
			if b.Piece(k.ID) == "" || k.Special && text[k.Start:k.End] != b.Piece(k.ID) {
				t.Fatalf("%+q: token %d is %+v", text, i, k)
			}
			start, end, ids[i] = k.Start, k.End, k.ID
		}
		b.Decode(ids)
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := fixtureTokenizer(b)
	const sentence = "he had not , after all , [MASK] me the chance but [MASK] abandoned me"
	for _, size := range []struct {
		name string
		text string
	}{
		{"sentence", sentence + " , and he said that it was not the end ."},
		{"accents", strings.ReplaceAll(sentence, "e", "é")},
		{"page", strings.Repeat(sentence+" . ", 100)},
	} {
		b.Run(size.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(size.text)))
			for b.Loop() {
				if _, err := tok.Encode(size.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		fixtureTokenizer(b)
	}
}
