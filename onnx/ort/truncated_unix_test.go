//go:build unix

package ort

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestExitOnTruncation: a process that reads a mapped file after its end was cut off says so and exits
// with code 3. The test runs itself as that process.
func TestExitOnTruncation(t *testing.T) {
	const text = "the file was cut off\n"
	if path := os.Getenv("ORT_TRUNCATED"); path != "" {
		ExitOnTruncation(text)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(1); err != nil {
			t.Fatal(err)
		}
		t.Fatal("read ", b[1<<15])
	}
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestExitOnTruncation$")
	child.Env = append(os.Environ(), "ORT_TRUNCATED="+path)
	out, err := child.CombinedOutput()
	if child.ProcessState.ExitCode() != 3 || string(out) != text {
		t.Errorf("%v, exit code %d: %s", err, child.ProcessState.ExitCode(), out)
	}
}
