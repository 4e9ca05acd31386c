package store

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSmallDisk fills a real file system of 1 MiB, where the system lets a test
// mount one. TestDiskFull needs no such permission.
func TestSmallDisk(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("none", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	j := killJobs["chunks of x"]
	j.steps = 700
	dir, whole := filepath.Join(mount, "run"), filepath.Join(t.TempDir(), "whole")
	j.run(t, whole, Options{Every: -1})
	err := j.attempt(t, dir, Options{Every: 20 * time.Millisecond}, system{})
	var full *WriteError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	}
	readable(t, dir, whole)
	if err := syscall.Mount("none", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := j.attempt(t, dir, Options{}, system{}); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, dir, whole)
}
