package clip

import (
	"testing"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// TestCanonical: values of open_clip's canonicalize_text after ftfy, but for a space that begins a text.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"The Old house, near\t the lane!":              "the old house near the lane",
		"don\u2019t \u201cdo\u201d a_b __c__ t-rex's":  "dont do a b c trexs",
		"\uff21 dog\uff01 caf\u0065\u0301\u3000\u2026": "a dog caf\u00e9 \u2026",
		" of the": " of the", "! cat": "cat", "_": "", "": "", "a\x00b\x0bc\x0cd": "abc d",
	} {
		if got := aligned.String(canonical(aligned.Of(text, 0))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestCanonicalOffsets: offsets are those of the text before it is cleaned.
func TestCanonicalOffsets(t *testing.T) {
	c := mustLoad(t, fixtureFolder(t, "own"))
	c.Canonicalize = true
	const text = "\u201cA\u201d, ?THE"
	tokens, err := c.Encode(text)
	if err != nil || len(tokens) != 2 {
		t.Fatalf("%v, %v", tokens, err)
	}
	for i, want := range []string{"A", "THE"} {
		if got := text[tokens[i].Start:tokens[i].End]; got != want {
			t.Errorf("token %d covers %q, want %q", i, got, want)
		}
	}
	if tokens, err := c.Encode("!?"); len(tokens) > 0 || err != nil {
		t.Errorf("a text of punctuation has tokens %v, %v", tokens, err)
	}
	if _, err := c.Encode("\xff"); err == nil {
		t.Error("invalid UTF-8 is no error")
	}
}
