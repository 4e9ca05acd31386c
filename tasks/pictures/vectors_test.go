package pictures

import (
	"bytes"
	"crypto/sha256"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// keep is a cache in a new folder, and a vector with its picture's sum.
func keep(t testing.TB) (*Vectors, Sum, []float32) {
	t.Helper()
	pre, err := read(`{}`)
	if err != nil {
		t.Fatal(err)
	}
	vector := []float32{1, -0.5, 3e-30, float32(math.Inf(1)), 0.1}
	return OpenVectors(filepath.Join(t.TempDir(), "not", "there"), "model", pre, len(vector)), sha256.Sum256([]byte("picture")), vector
}

// files are those of a cache.
func files(t testing.TB, v *Vectors) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(v.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, _ := filepath.Glob(filepath.Join(v.dir, ".*"))
	return append(list, hidden...)
}

func TestVectors(t *testing.T) {
	v, sum, vector := keep(t)
	if got, ok := v.Get(sum); ok || got != nil || v.Has(sum) {
		t.Errorf("an empty cache has %v", got)
	}
	if err := v.Put(sum, vector); err != nil {
		t.Fatal(err)
	}
	if got, ok := v.Get(sum); !ok || !slices.Equal(got, vector) || !v.Has(sum) {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := v.Get(sha256.Sum256([]byte("another"))); ok {
		t.Error("another picture is known")
	}
	if err := v.Put(sum, vector[1:]); err == nil {
		t.Error("a vector of another width is kept")
	}
	if n := len(files(t, v)); n != 1 {
		t.Errorf("%d files", n)
	}
}

// A vector belongs to a model, a preprocessing and a width.
func TestVectorsKey(t *testing.T) {
	v, sum, vector := keep(t)
	if err := v.Put(sum, vector); err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(v.dir)
	pre, _ := read(`{}`)
	other, _ := read(`{"resample": 2}`)
	for _, w := range []*Vectors{
		OpenVectors(root, "another", pre, len(vector)), OpenVectors(root, "model", other, len(vector)), OpenVectors(root, "model", pre, 4),
	} {
		if w.Has(sum) {
			t.Errorf("%+v has it", w)
		}
	}
	if !OpenVectors(root, "model", pre, len(vector)).Has(sum) {
		t.Error("the cache is not found again")
	}
}

// A file with any bit changed, cut off or grown counts as absent and is written anew.
func TestVectorsDamaged(t *testing.T) {
	v, sum, vector := keep(t)
	if err := v.Put(sum, vector); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(v.path(sum))
	if err != nil {
		t.Fatal(err)
	}
	bad := [][]byte{nil, good[:len(good)-1], append(bytes.Clone(good), 0)}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		bad = append(bad, b)
	}
	for i, b := range bad {
		if err := os.WriteFile(v.path(sum), b, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, ok := v.Get(sum); ok {
			t.Fatalf("damage %d: %v", i, got)
		}
	}
	if err := v.Put(sum, vector); err != nil || !v.Has(sum) {
		t.Errorf("not written anew: %v", err)
	}
	// The file of one picture under the name of another.
	another := Sum(sha256.Sum256([]byte("another")))
	if err := os.WriteFile(v.path(another), good, 0o644); err != nil {
		t.Fatal(err)
	}
	if v.Has(another) {
		t.Error("a file under another name is believed")
	}
}

func TestVectorsOff(t *testing.T) {
	var v *Vectors
	if v.Has(Sum{}) || v.Put(Sum{}, []float32{1}) != nil || v.Has(Sum{}) {
		t.Error("a cache that is off keeps something")
	}
}

func TestVectorsUnwritable(t *testing.T) {
	v, sum, vector := keep(t)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	v.dir = filepath.Join(blocked, "below")
	if err := v.Put(sum, vector); err == nil || !strings.Contains(err.Error(), envCache) || v.Has(sum) {
		t.Errorf("error %v", err)
	}

	// A folder stands where the vector should: nothing else is left.
	v, sum, vector = keep(t)
	if err := os.MkdirAll(filepath.Join(v.path(sum), "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := v.Put(sum, vector); err == nil || v.Has(sum) || len(files(t, v)) != 1 {
		t.Errorf("error %v, files %v", err, files(t, v))
	}
}

// Many writers and readers of one entry see all of it or nothing.
func TestVectorsConcurrent(t *testing.T) {
	v, sum, vector := keep(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := v.Put(sum, vector); err != nil {
					t.Error(err)
				}
				if got, ok := v.Get(sum); !ok || !slices.Equal(got, vector) {
					t.Errorf("%v, %v", got, ok)
				}
			}
		})
	}
	wg.Wait()
	if n := len(files(t, v)); n != 1 {
		t.Errorf("%d files are left", n)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(envCache, "/somewhere")
	if dir, err := CacheDir(); err != nil || dir != filepath.Join("/somewhere", "vectors") {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv(envCache, "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if dir, err := CacheDir(); err == nil && !filepath.IsAbs(dir) {
		t.Errorf("%s", dir)
	}
}
