package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrite: there is a page for each command, with its flags as help names them, and completions that a shell reads.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, has string }{
		{"man/gradhop.1", "gradhop-infill(1)"},
		{"man/gradhop-sample.1", `\fB--space\fP=""
	the states, a SPACE as above`},
		{"completions/gradhop.bash", "__start_gradhop"},
		{"completions/_gradhop", "#compdef gradhop"},
		{"completions/gradhop.fish", "complete -c gradhop"},
		{"completions/gradhop.ps1", "Register-ArgumentCompleter"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil || !strings.Contains(string(text), c.has) {
			t.Errorf("%s has no %q: %v", c.file, c.has, err)
		}
	}
}
