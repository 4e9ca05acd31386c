package bert

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/reference"
)

// fixture is testdata/lines.json, made by scripts/reference/tokenize_lines.py.
type fixture struct {
	Settings map[string]map[string]any   `json:"settings"`
	Cases    map[string][]reference.Case `json:"cases"`
	Decode   []struct {
		IDs  []int32 `json:"ids"`
		Text string  `json:"text"`
	} `json:"decode"`
	RuneBlocks map[string]string `json:"rune_blocks"`
}

// settingNames is the order of the settings in the rows behind rune_blocks.
var settingNames = []string{"uncased", "cased", "cased_stripped", "lower_accents", "whole_cjk", "raw"}

func loadReference(t testing.TB) fixture {
	t.Helper()
	var ref fixture
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
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustLoad(t testing.TB, fsys fs.FS) *Tokenizer {
	t.Helper()
	b, err := Load(fsys)
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
	return reference.Changed(t, read(t, "tokenizer.json"), func(file, _ map[string]any) { change(file) })
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
				if diff := reference.Compare(b, c); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestDecodeEqualsReference(t *testing.T) {
	b := mustLoad(t, os.DirFS("testdata"))
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
	blocks := reference.RuneBlocks(func(r rune) string {
		var row strings.Builder
		for _, n := range norms {
			row.WriteString(aligned.String(n.normalize("a"+string(r)+"\u0334a", 0)) + "|")
		}
		words := 0
		if err := splitWords(aligned.Of("a"+string(r)+"a", 0), func([]aligned.Char) error { words++; return nil }); err != nil {
			t.Fatal(err)
		}
		return row.String() + strconv.Itoa(words)
	})
	reference.CompareBlocks(t, blocks, ref.RuneBlocks)
}

// TestFullReference needs what scripts/reference/tokenize_lines.py --full wrote, whose folder is in
// GRADHOP_BERT_REFERENCE; scripts/reference/test_tokenize_lines.py makes it and runs this.
func TestFullReference(t *testing.T) {
	for _, folder := range reference.Folders(t, "GRADHOP_BERT_REFERENCE") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			reference.CompareLines(t, mustLoad(t, os.DirFS(folder)), filepath.Join(folder, "lines.jsonl"), 20000)
		})
	}
}
