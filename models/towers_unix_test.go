//go:build unix

package models

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gradhop/gradhop/models/hub"
)

// TestPipe: a pipe in place of a model is no file, and never waited for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "text_model.onnx"), 0o600); err != nil {
		t.Fatal(err)
	}
	var missing *Error
	if _, err := OpenTowers(bg, dir, hub.Options{}); !errors.As(err, &missing) || missing.File != "text_model.onnx" {
		t.Errorf("%v", err)
	}
}
