package clip

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/component"
	"github.com/gradhop/gradhop/tokenize/internal/tokenizetest"
)

// fixture is testdata/clip/lines.json, made by scripts/reference/tokenize_clip.py.
type fixture struct {
	Cases      map[string][]tokenizetest.Case `json:"cases"`
	RuneBlocks map[string]string              `json:"rune_blocks"`
}

func mustLoad(t testing.TB, fsys fs.FS) *Tokenizer {
	t.Helper()
	c, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fixtureFolder is a folder whose tokenizer.json is that of a fixture; "files" has vocab.json and
// merges.txt in its place, made from the fixture "own".
func fixtureFolder(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	if name != "files" {
		return fstest.MapFS{"tokenizer.json": {Data: read(t, name+".json")}}
	}
	var file struct {
		Model struct {
			Vocab  json.RawMessage
			Merges [][]string
		}
	}
	if err := json.Unmarshal(read(t, "own.json"), &file); err != nil {
		t.Fatal(err)
	}
	merges := "#version: 0.2\n"
	for _, m := range file.Model.Merges {
		merges += strings.Join(m, " ") + "\n"
	}
	return fstest.MapFS{"vocab.json": {Data: file.Model.Vocab}, "merges.txt": {Data: []byte(merges)}}
}

func loadFixture(t testing.TB) fixture {
	t.Helper()
	var ref fixture
	if err := json.Unmarshal(read(t, "lines.json"), &ref); err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestEqualsReference(t *testing.T) {
	ref := loadFixture(t)
	for _, name := range []string{"own", "odd", "files", "holes"} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, fixtureFolder(t, name))
			if len(ref.Cases[name]) < 100 {
				t.Fatalf("only %d cases", len(ref.Cases[name]))
			}
			for _, k := range ref.Cases[name] {
				if diff := tokenizetest.Compare(c, k); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	if len(ref.Cases) != 4 {
		t.Errorf("%d settings", len(ref.Cases))
	}
}

// TestEveryRune compares how every character of Unicode is normalised and split among others with
// the reference, by a hash for each 4,096 code points.
func TestEveryRune(t *testing.T) {
	normal, err := component.ReadNormalizer([]byte(`{"type": "Sequence", "normalizers": [{"type": "NFC"},
		{"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "Lowercase"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	words, err := component.ReadSplitter([]byte(`{"type": "Split", "behavior": "Removed", "invert": true,
		"pattern": {"Regex": "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}}`))
	if err != nil {
		t.Fatal(err)
	}
	tokenizetest.CompareBlocks(t, loadFixture(t).RuneBlocks, func(r rune) string {
		row := aligned.String(normal(aligned.Of("e"+string(r)+"\u0323\u0301"+string(r)+"1", 0)))
		for _, w := range words(aligned.Of("a"+string(r)+"1!", 0)) {
			row += "|" + aligned.String(w)
		}
		return row
	})
}

// TestFullReference needs what scripts/reference/tokenize_clip.py --full wrote, whose folder is in
// GRADHOP_CLIP_REFERENCE; scripts/reference/test_tokenize_clip.py makes it and runs this.
func TestFullReference(t *testing.T) {
	for _, folder := range tokenizetest.Folders(t, "GRADHOP_CLIP_REFERENCE") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c := mustLoad(t, os.DirFS(folder))
			tokenizetest.CompareLines(t, c, filepath.Join(folder, "lines.jsonl"), 20000)
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
