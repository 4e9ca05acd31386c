package prompttune

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/samplers/store"
)

// TestScoreFile goes on with a run whose texts were evaluated apart: what its file knows is
// taken from there, and what it has lost is evaluated again, to the same results.
func TestScoreFile(t *testing.T) {
	o, out := stopped(t, kinds["sgdld batch"], nil)
	if err := launch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := outcome(t, o, out)
	path := filepath.Join(o.Out, scoresFile)
	whole := read(t, o.Out, scoresFile)
	known := func() map[string]float64 {
		s, err := openScores(o.Out)
		if err != nil {
			t.Fatal(err)
		}
		return s.known
	}
	all := known()
	var doc Document
	if err := json.Unmarshal([]byte(read(t, o.Out, ResultsFile)), &doc); err != nil {
		t.Fatal(err)
	}
	if int64(len(all)) != doc.Diagnostics.Rescored {
		t.Fatalf("%d texts in the file, %d were evaluated", len(all), doc.Diagnostics.Rescored)
	}
	lines := strings.SplitAfter(whole, "\n")[1:] // the first is empty
	first, rest := lines[0], strings.Join(lines[1:], "")
	flipped := strings.Replace(first, first[40:41], map[bool]string{true: "1", false: "0"}[first[40] == '0'], 1)
	for what, text := range map[string]string{
		"all there": whole, "empty": "", "a digit has changed": flipped + rest, "the end is cut off": whole[:len(whole)-20], "something else": "\x00\xff a\nb c d\n" + whole,
	} {
		write(t, path, []byte(text))
		again, out := resumed(t, o, o.Out)
		sameOutcome(t, what, outcome(t, again, out), want)
		if got := known(); !maps.Equal(got, all) {
			t.Errorf("%s: the file knows %d texts, and %d before", what, len(got), len(all))
		}
	}
	// A cosine that is wrong shows that the file was read, and the text not evaluated.
	best := doc.Results[0]
	write(t, path, []byte(whole+scoreLine(best.Text, 0.99951171875)))
	again, _ := resumed(t, o, o.Out)
	if err := json.Unmarshal([]byte(read(t, again.Resume, ResultsFile)), &doc); err != nil {
		t.Fatal(err)
	}
	if r := doc.Results[0]; r.Text != best.Text || r.U != 0.99951171875 || r.Step != best.Step {
		t.Errorf("the best is %+v, and was %+v", r, best)
	}
	// A file that cannot be read or written.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	var bad *store.Error
	if _, err := openScores(o.Out); !errors.As(err, &bad) {
		t.Errorf("a folder in its place: %v", err)
	}
	var full *store.Error
	if err := (&scores{path: path}).Put([]string{"a"}, []float64{1}); !errors.As(err, &full) || full.Reason != "" {
		t.Errorf("a folder in its place: %v", err)
	}
}
