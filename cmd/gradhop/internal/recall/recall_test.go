package recall

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
)

// flags is a set with one flag of each kind that commands have.
func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	f.StringArray("images", nil, "")
	f.StringSlice("write", nil, "")
	f.String("report", "", "")
	f.Int("steps", 5, "")
	f.Int("chains", 2, "")
	f.String("chain-ids", "", "")
	f.Uint64("seed", 0, "")
	f.String("out", "", "")
	f.Bool("quiet", false, "")
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// values are those of all flags that are set.
func values(f *pflag.FlagSet) map[string]string {
	all := map[string]string{}
	f.Visit(func(g *pflag.Flag) { all[g.Name] = g.Value.String() })
	return all
}

// TestRecall goes on in the same folder and in another.
func TestRecall(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	for _, d := range []string{"run", "pics", "elsewhere"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(base, "run")
	c := &Command{Name: "find", Inside: []string{"write"}}
	begun := flags(t, "--images", "pics:2", "--images", "a, b", "--write", "x,y", "--report", "page.html", "--steps", "7", "--out", "run", "--quiet")
	if err := c.Remember(begun, 1<<63+1); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(run); err != nil {
		t.Fatal(err)
	}
	paths := Paths{"images": WeightedPath, "report": Output}
	f := flags(t, "--steps", "9")
	if _, err := Resume(run, "find", f, paths); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"images": `[pics:2,"a, b"]`, "write": "[" + filepath.Join(run, "x") + "," + filepath.Join(run, "y") + "]", "report": "page.html", "steps": "9", "seed": "9223372036854775809",
	}
	if got := values(f); !maps.Equal(got, want) {
		t.Errorf("in the same folder %v\nwant %v", got, want)
	}
	t.Chdir("elsewhere")
	f = flags(t)
	if _, err := Resume(run, "find", f, paths); err != nil {
		t.Fatal(err)
	}
	// What no longer is the flag of this folder is that of the one before.
	here, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	want["images"], want["report"], want["steps"] = "["+filepath.Join(here, "pics")+`:2,"a, b"]`, filepath.Join(here, "page.html"), "7"
	got := values(f)
	for name, v := range got {
		got[name] = strings.ReplaceAll(v, base, here)
	}
	for name, v := range want {
		want[name] = strings.ReplaceAll(v, base, here)
	}
	if !maps.Equal(got, want) {
		t.Errorf("in another %v\nwant %v", got, want)
	}
	var usage *app.Error
	if _, err := Resume(run, "sample", flags(t), nil); !errors.As(err, &usage) {
		t.Errorf("by another command: %v", err)
	}
	var bad *store.Error
	for _, text := range []string{`{"command": "find", "flags": {"none": ["1"]}}`, `{"command": "find", "flags": {"steps": ["x"]}}`, "{"} {
		if err := os.WriteFile(filepath.Join(run, app.CommandFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(run, "find", flags(t), nil); err == nil || text != "{" && !errors.As(err, &bad) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestJoin: the whole has the chains of its parts, their common files, and no output of
// one of them.
func TestJoin(t *testing.T) {
	part := t.TempDir()
	if err := os.WriteFile(filepath.Join(part, "names.txt"), []byte("names"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for dir, text := range map[string]string{part: "a\nb", other: "c\n"} {
		if err := os.WriteFile(filepath.Join(dir, "lines.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &Command{Name: "find", Files: []string{"names.txt"}, Joined: []string{"lines.txt", "none.txt"}, Outputs: []string{"report"}}
	if err := c.Remember(flags(t, "--chain-ids", "0,2", "--report", "page.html", "--steps", "4"), 3); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(part); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		ids         []int64
		name, value string
	}{{[]int64{0, 1, 2}, "chains", "3"}, {[]int64{0, 2, 5}, "chain-ids", "0,2,5"}} {
		whole := t.TempDir()
		if _, err := Join(whole, []string{part, other}, x.ids); err != nil {
			t.Fatal(err)
		}
		got, err := Read(whole)
		if err != nil || got.Name != "find" || len(got.Flags) != 3 || !slices.Equal(got.Flags[x.name], []string{x.value}) || got.Flags["steps"][0] != "4" || got.Flags["seed"][0] != "3" {
			t.Errorf("%v: %+v, %v", x.ids, got, err)
		}
		for name, want := range map[string]string{"names.txt": "names", "lines.txt": "a\nb\nc\n", "none.txt": ""} {
			if text, err := os.ReadFile(filepath.Join(whole, name)); string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	c.Files = []string{"../names.txt"}
	if err := c.Write(part); err != nil {
		t.Fatal(err)
	}
	var bad *store.Error
	if _, err := Join(t.TempDir(), []string{part}, []int64{0}); !errors.As(err, &bad) {
		t.Errorf("a file outside: %v", err)
	}
	if c, err := Join(t.TempDir(), []string{t.TempDir()}, []int64{0}); c != nil || err != nil {
		t.Errorf("a part of which nothing is remembered: %+v, %v", c, err)
	}
}

func TestParseIDs(t *testing.T) {
	for text, want := range map[string][]int64{"0": {0}, "5,0-2": {0, 1, 2, 5}, " 7 , 3-3": {3, 7}} {
		if got, err := ParseIDs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "3-1", "-1", "1,", "0-2,1", "1-2-3", "99999999999"} {
		var usage *app.Error
		if _, err := ParseIDs(text); !errors.As(err, &usage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
