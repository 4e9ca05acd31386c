package aligned

import (
	"strings"
	"testing"
)

// TestLossy compares the replacement of bad bytes with the examples of the Unicode standard, section
// 3.9, among others.
func TestLossy(t *testing.T) {
	const bad = "\ufffd"
	for in, want := range map[string]string{
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41":                   strings.Repeat(bad, 8) + "A",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41":                   strings.Repeat(bad, 8) + "A",
		"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42":                   strings.Repeat(bad, 5) + "A" + bad + bad + "B",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41":                   strings.Repeat(bad, 4) + "A",
		"ok \xf0\x9f\x98\x80 \xf0\x9f\x98":                       "ok 😀 " + bad,
		"\xf4\x8f\xbf\xf4\x90\xbf \xc2\xc2\xa9 \xf0\x90\x90\xf0": bad + bad + bad + bad + " " + bad + "© " + bad + bad,
	} {
		if got := Lossy([]byte(in)); got != want {
			t.Errorf("%q: got %+q, want %+q", in, got, want)
		}
	}
}
