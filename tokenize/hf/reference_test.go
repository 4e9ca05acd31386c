package hf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradhop/gradhop/tokenize/internal/tokenizetest"
)

// fixture is testdata/families/NAME/lines.json, made by scripts/reference/tokenize_families.py.
type fixture struct {
	Mask  *string             `json:"mask"`
	Begin []int32             `json:"begin"`
	End   []int32             `json:"end"`
	Cases []tokenizetest.Case `json:"cases"`
}

func mustLoad(t testing.TB, folder string) *Tokenizer {
	t.Helper()
	tok, err := Load(os.DirFS(folder))
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return tok
}

func TestEqualsReference(t *testing.T) {
	folders, err := filepath.Glob("testdata/families/*")
	if err != nil || len(folders) < 17 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var f fixture
			data, err := os.ReadFile(filepath.Join(folder, "lines.json"))
			if err == nil {
				err = json.Unmarshal(data, &f)
			}
			if err != nil || len(f.Cases) < 60 {
				t.Fatalf("%d cases, %v", len(f.Cases), err)
			}
			tok := mustLoad(t, folder)
			if !slices.Equal(tok.Begin, f.Begin) || !slices.Equal(tok.End, f.End) {
				t.Errorf("around a text: %v %v, want %v %v", tok.Begin, tok.End, f.Begin, f.End)
			}
			if f.Mask == nil && tok.Mask >= 0 || f.Mask != nil && tok.Piece(tok.Mask) != *f.Mask {
				t.Errorf("mask is %q", tok.Piece(tok.Mask))
			}
			for _, c := range f.Cases {
				if diff := tokenizetest.Compare(tok, c); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestFullReference needs what scripts/reference/tokenize_families.py --full wrote, whose folder is
// in GRADHOP_TOKENIZER_REFERENCE; scripts/reference/test_tokenize_families.py makes it and runs this.
func TestFullReference(t *testing.T) {
	for _, folder := range tokenizetest.Folders(t, "GRADHOP_TOKENIZER_REFERENCE") {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			tokenizetest.CompareLines(t, mustLoad(t, folder), filepath.Join(folder, "lines.jsonl"), 500)
		})
	}
}
