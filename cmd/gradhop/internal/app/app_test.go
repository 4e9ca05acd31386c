package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		note        string
		columns     int
		want        string
	}{
		{0, 0, "", 0, "fetch"},
		{0, 4, "", 0, "fetch [                        ] 0%"},
		{1, 4, "now", 0, "fetch [======                  ] 25%  now"},
		{4, 4, "", 80, "fetch [========================] 100%"},
		{9, 4, "", 0, "fetch [========================] 100%"},
		{1, 4, "äöü", 10, "fetch [=="},
	} {
		if got := line("fetch", c.done, c.total, c.note, c.columns); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// TestOneLine: what a message names cannot begin lines of its own, nor steer a terminal.
func TestOneLine(t *testing.T) {
	for name, want := range map[string]string{
		"a b/\u00e9 \"c\".png":           "a b/\u00e9 \"c\".png",
		"new\nline.png":                  `new\nline.png`,
		"\x1b[31mred\rgradhop: all well": `\x1b[31mred\rgradhop: all well`,
		"bad \xff\xfe":                   `bad \xff\xfe`,
		"\u202egnp.exe":                  `\u202egnp.exe`,
	} {
		var log, bar strings.Builder
		a := &App{Err: &log}
		a.Logf("skipped: %s", name)
		a.Errorf("%s", errors.New(name))
		if got := log.String(); got != "gradhop: skipped: "+want+"\ngradhop: "+want+"\n" {
			t.Errorf("%q: %q", name, got)
		}
		(&App{Err: &bar, ErrTerminal: true}).NewBar().Show(name, 1, 1, name)
		if got := strings.TrimPrefix(bar.String(), "\r\x1b[K"); strings.ContainsAny(got, "\n\r\x1b") || strings.Count(got, want) != 2 {
			t.Errorf("%q: a progress line %q", name, got)
		}
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		terminal, quiet, shows bool
	}{{true, false, true}, {false, false, false}, {true, true, false}} {
		var out strings.Builder
		b := (&App{Err: &out, ErrTerminal: c.terminal, Quiet: c.quiet}).NewBar()
		for k := range int64(1000) {
			b.Show("x", k, 1000, "")
		}
		b.Clear()
		b.Clear()
		if shown := strings.Count(out.String(), "\r"); (shown > 0) != c.shows || shown > 200 {
			t.Errorf("%+v: drawn %d times", c, shown)
		}
	}
}

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	a := &App{Out: io.Discard}
	path := filepath.Join(dir, "a.txt")
	only := func(want string) {
		t.Helper()
		list, err := os.ReadDir(dir)
		if err != nil || len(list) > 1 {
			t.Errorf("%d files in the folder (%v)", len(list), err)
		}
		b, err := os.ReadFile(path)
		if want == "" && errors.Is(err, os.ErrNotExist) {
			return
		}
		if string(b) != want {
			t.Errorf("the file holds %q (%v), want %q", b, err, want)
		}
	}
	write := func(text string) *Output {
		t.Helper()
		o, err := a.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(o, text); err != nil {
			t.Fatal(err)
		}
		return o
	}
	write("lost").Discard()
	only("")
	o := write("one")
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	o.Discard() // too late
	only("one")
	write("lost").Discard()
	only("one")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := write("two").Commit(); err != nil {
		t.Fatal(err)
	}
	only("two")
	if st, _ := os.Stat(path); runtime.GOOS != "windows" && st.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v", st.Mode())
	}
}

func TestOutputThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	o, err := (&App{}).Create(link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "new"); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced (%v)", err)
	}
	if b, _ := os.ReadFile(target); string(b) != "new" {
		t.Errorf("the target holds %q", b)
	}
}

func TestOutputErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "file")} {
		var bad *OutputError
		if _, err := (&App{}).Create(path); !errors.As(err, &bad) || !bad.Before || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
	o, err := (&App{Out: failing{}}).Create("-")
	if err != nil {
		t.Fatal(err)
	}
	var bad *OutputError
	if _, err := o.Write([]byte("x")); !errors.As(err, &bad) || bad.Before {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
