package tokenize

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// reference is testdata/bert/lines.json, made by scripts/reference/tokenize_lines.py.
type reference struct {
	Settings map[string]map[string]any `json:"settings"`
	Cases    map[string][]refCase      `json:"cases"`
	Decode   []struct {
		IDs  []int32 `json:"ids"`
		Text string  `json:"text"`
	} `json:"decode"`
	RuneBlocks map[string]string `json:"rune_blocks"`
}

// refCase is a text and its tokens as id, start byte, end byte.
type refCase struct {
	Text   string   `json:"text"`
	Tokens [][3]int `json:"tokens"`
}

// settingNames is the order of the settings in the rows behind rune_blocks.
var settingNames = []string{"uncased", "cased", "cased_stripped", "lower_accents", "whole_cjk", "raw"}

func loadReference(t testing.TB) reference {
	t.Helper()
	var ref reference
	if err := json.Unmarshal(read(t, "lines.json"), &ref); err != nil {
		t.Fatal(err)
	}
	if len(ref.Settings) != len(settingNames) {
		t.Fatalf("settings %v, the tests know %v", ref.Settings, settingNames)
	}
	return ref
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "bert", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustLoad(t testing.TB, fsys fs.FS) *BERT {
	t.Helper()
	b, err := LoadBERT(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withNormalizer is the fixture's tokenizer.json with fields of its normalizer changed.
func withNormalizer(t testing.TB, changes map[string]any) fs.FS {
	t.Helper()
	return withTokenizerJSON(t, func(file map[string]any) {
		for k, v := range changes {
			file["normalizer"].(map[string]any)[k] = v
		}
	})
}

func withTokenizerJSON(t testing.TB, change func(map[string]any)) fstest.MapFS {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(read(t, "tokenizer.json"), &file); err != nil {
		t.Fatal(err)
	}
	change(file)
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{tokenizerFile: {Data: data}}
}

// compare returns "" when the tokens of a case are the reference's.
func compare(b Tokenizer, c refCase) string {
	got, err := b.Encode(c.Text)
	if err != nil {
		return err.Error()
	}
	found := make([][3]int, len(got))
	for i, k := range got {
		found[i] = [3]int{int(k.ID), k.Start, k.End}
	}
	if fmt.Sprint(found) != fmt.Sprint(c.Tokens) {
		return fmt.Sprintf("%+q\n got %v\nwant %v", c.Text, found, c.Tokens)
	}
	return ""
}

func TestEncodeEqualsReference(t *testing.T) {
	ref := loadReference(t)
	for _, name := range settingNames {
		t.Run(name, func(t *testing.T) {
			b := mustLoad(t, withNormalizer(t, ref.Settings[name]))
			if len(ref.Cases[name]) < 100 {
				t.Fatalf("only %d cases", len(ref.Cases[name]))
			}
			for _, c := range ref.Cases[name] {
				if diff := compare(b, c); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestDecodeEqualsReference(t *testing.T) {
	b := mustLoad(t, os.DirFS("testdata/bert"))
	for _, c := range loadReference(t).Decode {
		if got := b.Decode(c.IDs); got != c.Text {
			t.Errorf("%v: got %q, want %q", c.IDs, got, c.Text)
		}
	}
}

// TestEveryRune compares what each setting makes of every character of Unicode with the reference,
// by a hash for each 4,096 code points: Go and the reference follow different Unicode versions.
func TestEveryRune(t *testing.T) {
	ref := loadReference(t)
	var norms []normalizer
	for _, name := range settingNames {
		norms = append(norms, mustLoad(t, withNormalizer(t, ref.Settings[name])).normalizer)
	}
	blocks := runeBlocks(func(r rune) string {
		var row strings.Builder
		for _, n := range norms {
			row.WriteString(charText(n.normalize("a"+string(r)+"\u0334a", 0)) + "|")
		}
		words := 0
		if err := splitWords(plainChars("a"+string(r)+"a"), func([]char) error { words++; return nil }); err != nil {
			t.Fatal(err)
		}
		return row.String() + strconv.Itoa(words)
	})
	for key, want := range ref.RuneBlocks {
		if blocks[key] != want {
			t.Errorf("some of U+%s000 to U+%sFFF differs from the reference", key, key)
		}
	}
	if len(blocks) != len(ref.RuneBlocks) {
		t.Errorf("%d blocks, reference has %d", len(blocks), len(ref.RuneBlocks))
	}
}

// runeBlocks is the beginning of a hash of row's lines for each 4,096 code points, without the
// surrogates and the planes that hold nothing.
func runeBlocks(row func(rune) string) map[string]string {
	blocks := map[string]string{}
	for first := rune(0); first < 0x110000; first += 0x1000 {
		h := sha256.New()
		for r := first; r < first+0x1000; r++ {
			if r >= 0xD800 && r < 0xE000 || r >= 0x40000 && r < 0xE0000 {
				continue
			}
			fmt.Fprintf(h, "%s\n", row(r))
			blocks[fmt.Sprintf("%X", first>>12)] = ""
		}
		if _, ok := blocks[fmt.Sprintf("%X", first>>12)]; ok {
			blocks[fmt.Sprintf("%X", first>>12)] = hex.EncodeToString(h.Sum(nil))[:16]
		}
	}
	return blocks
}

// TestFullReference needs what scripts/reference/tokenize_lines.py --full wrote, whose folder is in
// GRADHOP_BERT_REFERENCE; scripts/reference/test_tokenize_lines.py makes it and runs this.
func TestFullReference(t *testing.T) {
	for _, folder := range referenceFolders(t, "GRADHOP_BERT_REFERENCE") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			compareLines(t, mustLoad(t, os.DirFS(folder)), filepath.Join(folder, "lines.jsonl"), 20000)
		})
	}
}
