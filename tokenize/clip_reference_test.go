package tokenize

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// clipReference is testdata/clip/lines.json, made by scripts/reference/tokenize_clip.py.
type clipReference struct {
	Cases      map[string][]fullCase `json:"cases"`
	RuneBlocks map[string]string     `json:"rune_blocks"`
}

// fullCase is a text with its tokens and what they decode to, and ids with what they decode to.
type fullCase struct {
	refCase
	Decoded    string  `json:"decoded"`
	IDs        []int32 `json:"ids"`
	IDsDecoded string  `json:"ids_decoded"`
}

// compareFull returns "" when everything in a case is the reference's.
func compareFull(tok Tokenizer, c fullCase) string {
	if diff := compare(tok, c.refCase); diff != "" {
		return diff
	}
	ids := make([]int32, len(c.Tokens))
	for i, k := range c.Tokens {
		ids[i] = int32(k[0])
	}
	if got := tok.Decode(ids); got != c.Decoded {
		return fmt.Sprintf("%+q decodes to\n     %+q\nwant %+q", c.Text, got, c.Decoded)
	}
	if got := tok.Decode(c.IDs); got != c.IDsDecoded {
		return fmt.Sprintf("%v decodes to\n     %+q\nwant %+q", c.IDs, got, c.IDsDecoded)
	}
	return ""
}

// compareLines compares every line of a file with the tokenizer.
func compareLines(t *testing.T, tok Tokenizer, file string, least int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, wrong := 0, 0
	s := bufio.NewScanner(f)
	for s.Buffer(nil, 1<<20); s.Scan(); n++ {
		var c fullCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if diff := compareFull(tok, c); diff != "" {
			if wrong++; wrong < 20 {
				t.Error(diff)
			}
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	t.Logf("%d of %d lines differ", wrong, n)
	if n < least || wrong > 0 {
		t.Errorf("%d of %d lines differ; at least %d must agree", wrong, n, least)
	}
}

func mustLoadCLIP(t testing.TB, fsys fs.FS) *CLIP {
	t.Helper()
	c, err := LoadCLIP(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readCLIP(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "clip", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// clipFolder is a folder whose tokenizer.json is that of a fixture; "files" has vocab.json and
// merges.txt in its place, made from the fixture "own".
func clipFolder(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	if name != "files" {
		return fstest.MapFS{tokenizerFile: {Data: readCLIP(t, name+".json")}}
	}
	var file struct {
		Model struct {
			Vocab  json.RawMessage
			Merges [][]string
		}
	}
	if err := json.Unmarshal(readCLIP(t, "own.json"), &file); err != nil {
		t.Fatal(err)
	}
	merges := "#version: 0.2\n"
	for _, m := range file.Model.Merges {
		merges += strings.Join(m, " ") + "\n"
	}
	return fstest.MapFS{vocabJSONFile: {Data: file.Model.Vocab}, mergesFile: {Data: []byte(merges)}}
}

func loadCLIPReference(t testing.TB) clipReference {
	t.Helper()
	var ref clipReference
	if err := json.Unmarshal(readCLIP(t, "lines.json"), &ref); err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestCLIPEqualsReference(t *testing.T) {
	ref := loadCLIPReference(t)
	for _, name := range []string{"own", "odd", "files", "holes"} {
		t.Run(name, func(t *testing.T) {
			c := mustLoadCLIP(t, clipFolder(t, name))
			if len(ref.Cases[name]) < 100 {
				t.Fatalf("only %d cases", len(ref.Cases[name]))
			}
			for _, k := range ref.Cases[name] {
				if diff := compareFull(c, k); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	if len(ref.Cases) != 4 {
		t.Errorf("%d settings", len(ref.Cases))
	}
}

// TestCLIPEveryRune compares how every character of Unicode is normalised and split among others with
// the reference, by a hash for each 4,096 code points.
func TestCLIPEveryRune(t *testing.T) {
	got := runeBlocks(func(r rune) string {
		var words []string
		splitCLIP(plainChars("a"+string(r)+"1!"), nil, func(w []char) { words = append(words, charText(w)) })
		return normalizedText("e"+string(r)+"\u0323\u0301"+string(r)+"1") + "|" + strings.Join(words, "|")
	})
	want := loadCLIPReference(t).RuneBlocks
	if len(got) != len(want) {
		t.Errorf("%d blocks, reference has %d", len(got), len(want))
	}
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("some of U+%s000 to U+%sFFF differs from the reference", key, key)
		}
	}
}

func plainChars(text string) []char { return normalizer{}.normalize(text, 0) }

func charText(chars []char) string {
	var out strings.Builder
	for _, c := range chars {
		out.WriteRune(c.r)
	}
	return out.String()
}

// TestCLIPFullReference needs what scripts/reference/tokenize_clip.py --full wrote, whose folder is in
// GRADHOP_CLIP_REFERENCE; scripts/reference/test_tokenize_clip.py makes it and runs this.
func TestCLIPFullReference(t *testing.T) {
	for _, folder := range referenceFolders(t, "GRADHOP_CLIP_REFERENCE") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c := mustLoadCLIP(t, os.DirFS(folder))
			compareLines(t, c, filepath.Join(folder, "lines.jsonl"), 20000)
			if c.Size() != 49408 {
				return
			}
			for text, want := range map[string][]int32{
				"a photo of a fox":              {49406, 320, 1125, 539, 320, 3240, 49407},
				"this is a test string of text": {49406, 589, 533, 320, 1628, 9696, 539, 4160, 49407},
			} {
				tokens, err := c.Encode(text)
				if err != nil {
					t.Fatal(err)
				}
				got := []int32{c.SOT}
				for _, k := range tokens {
					got = append(got, k.ID)
				}
				if got = append(got, c.EOT); !reflect.DeepEqual(got, want) {
					t.Errorf("%q: got %v, want %v", text, got, want)
				}
			}
		})
	}
}

// referenceFolders are the folders below the one that an environment variable names.
func referenceFolders(t *testing.T, variable string) []string {
	t.Helper()
	root := os.Getenv(variable)
	if root == "" {
		t.Skip(variable + " is not set")
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, filepath.Join(root, e.Name()))
		}
	}
	if len(folders) < 2 {
		t.Fatalf("%s has %d folders", root, len(folders))
	}
	return folders
}
