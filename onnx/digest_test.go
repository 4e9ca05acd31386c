package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// TestDigest: that of a plain file is its sha256; with external data every file counts.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"raw.onnx", "outside.onnx", "outside.bin"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(name string) string {
		t.Helper()
		m, err := Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Digest(m)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	b, err := os.ReadFile(filepath.Join(dir, "raw.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if have, want := digest("raw.onnx"), hex.EncodeToString(sum[:]); have != want {
		t.Errorf("digest %s, sha256 %s", have, want)
	}
	before := digest("outside.onnx")
	data := filepath.Join(dir, "outside.bin")
	weights, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	weights[0] ^= 1
	if err := os.WriteFile(data, weights, 0o644); err != nil {
		t.Fatal(err)
	}
	if after := digest("outside.onnx"); after == before || len(after) != 64 {
		t.Errorf("digest %s before and %s after a weight changed", before, after)
	}
}
