package aligned

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestClasses compares the classes with those of the reference, at every character.
func TestClasses(t *testing.T) {
	for name, has := range map[string]func(rune) bool{
		"Dropped": Dropped.Has, "Accent": Accent.Has, "Mark": Mark.Has, "Word": Word.Has, "Ideograph": Ideograph.Has, "Punctuation": Punctuation.Has,
		`\p{N}`:      Number.Has,
		`\p{L}`:      func(r rune) bool { return unicode.In(r, unicode.L, LateLetter) },
		`\s`:         func(r rune) bool { return unicode.Is(unicode.White_Space, r) },
		"Compatible": func(r rune) bool { made := compatible(r); return made != "" && made != string(r) },
		// A character with a canonical decomposition has the classes of its parts.
		"Combining": func(r rune) bool { return class(r) != 0 || r == 0x0F73 || r == 0x0F75 || r == 0x0F81 },
	} {
		runs := reference(t)[name]
		if len(runs) == 0 {
			t.Fatalf("no reference for %s", name)
		}
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if !utf8.ValidRune(r) {
				continue
			}
			for len(runs) > 0 && runs[0][1] < r {
				runs = runs[1:]
			}
			if want := len(runs) > 0 && runs[0][0] <= r; has(r) != want {
				t.Errorf("%s of %U is %v, want %v (Go has Unicode %s)", name, r, !want, want, unicode.Version)
			}
		}
	}
}

// reference returns the first and last character of each run of each class.
func reference(t *testing.T) map[string][][2]rune {
	t.Helper()
	classes := map[string][][2]rune{}
	for _, file := range []string{"lines.json", "clip.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var rows map[string]json.RawMessage
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(err)
		}
		for name, row := range rows {
			var runs [][2]rune
			if json.Unmarshal(row, &runs) == nil { // made_by and library are strings
				classes[name] = runs
			}
		}
	}
	return classes
}
