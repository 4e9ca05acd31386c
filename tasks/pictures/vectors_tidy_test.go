package pictures

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// age sets the time at which a file was changed back by so many hours.
func age(t *testing.T, path string, hours int) {
	t.Helper()
	then := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// fill puts vectors of n pictures into a cache, used 1, 2, ... hours ago, plus hours.
func fill(t *testing.T, v *Vectors, n, hours int) []Sum {
	t.Helper()
	var sums []Sum
	for k := range n {
		sum := Sum(sha256.Sum256(fmt.Appendf(nil, "picture %d", k)))
		if err := v.Put(sum, make([]float32, v.width)); err != nil {
			t.Fatal(err)
		}
		age(t, v.path(sum), 1+k+hours)
		sums = append(sums, sum)
	}
	return sums
}

// reopen is a process that comes later.
func reopen(v *Vectors, most int64) *Vectors {
	return &Vectors{dir: v.dir, key: v.key, width: v.width, most: most}
}

// The vectors that were not used for longest go first, whichever model they belong to.
func TestVectorsBounded(t *testing.T) {
	v, extra, vector := keep(t)
	pre, _ := read(`{}`)
	other := OpenVectors(filepath.Dir(v.dir), "another", pre, v.width)
	mine := fill(t, v, 6, 0)       // used 1 to 6 hours ago
	theirs := fill(t, other, 6, 3) // used 4 to 9 hours ago
	if !other.Has(theirs[5]) {     // which is used by that
		t.Fatal("a vector is gone before there is a bound")
	}
	// Room for seven: the new one, the one just used, those of 1 to 3 hours and two of 4.
	if err := reopen(v, 7*block).Put(extra, vector); err != nil {
		t.Fatal(err)
	}
	var left []bool
	for _, sum := range mine {
		_, err := os.Stat(v.path(sum))
		left = append(left, err == nil)
	}
	for _, sum := range theirs {
		_, err := os.Stat(other.path(sum))
		left = append(left, err == nil)
	}
	if want := []bool{true, true, true, true, false, false, true, false, false, false, false, true}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if !v.Has(extra) {
		t.Error("the vector that was written last is gone")
	}
}

// A run that goes on for long tidies again.
func TestVectorsBoundedWhileWriting(t *testing.T) {
	v, _, _ := keep(t)
	v.most = 10 * block
	v.puts.Store(tidyPuts - 20)
	fill(t, v, 21, 0)
	if n := len(files(t, v)); n != 10 {
		t.Errorf("%d vectors, want 10", n)
	}
}

// What a killed process left goes after a day; what is being written, and what is none of
// a cache, stays.
func TestVectorsLeftovers(t *testing.T) {
	v, sum, vector := keep(t)
	fill(t, v, 1, 0)
	root := filepath.Dir(v.dir)
	partial := "." + sum.String() + "."
	names := map[string]bool{ // whether it stays, 25 hours old
		filepath.Join(v.dir, partial+"123"):             false,
		filepath.Join(v.dir, "notes.txt"):               true,
		filepath.Join(v.dir, ".notes.txt"):              true,
		filepath.Join(v.dir, strings.Repeat("A", 64)):   true, // not as hex is written here
		filepath.Join(root, partial+"123"):              true,
		filepath.Join(root, "mine", partial+"123"):      true,
		filepath.Join(root, "mine", sum.String()):       true,
		filepath.Join(v.dir, sum.String()+".bak"):       true,
		filepath.Join(v.dir, partial+"f", "in", "here"): true,
	}
	for path := range names {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 3*block), 0o644); err != nil {
			t.Fatal(err)
		}
		age(t, path, 25)
	}
	age(t, filepath.Join(v.dir, partial+"f"), 25)
	young := filepath.Join(v.dir, partial+"456")
	if err := os.WriteFile(young, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	age(t, young, 23)
	names[young] = true
	if err := reopen(v, 0).Put(sum, vector); err != nil { // nothing fits
		t.Fatal(err)
	}
	for path, stays := range names {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, stays %v", path, err, stays)
		}
	}
	if v.Has(sum) {
		t.Error("a vector is left where none fits")
	}
}

// Processes that write, read and tidy at a time find a vector whole or not at all, and
// fail at nothing.
func TestVectorsTidyConcurrent(t *testing.T) {
	v, _, _ := keep(t)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for k := range 40 {
				n := (k*7 + w) % 30
				sum := Sum(sha256.Sum256(fmt.Appendf(nil, "picture %d", n)))
				vector := slices.Repeat([]float32{float32(n)}, v.width)
				mine := reopen(v, 8*block) // every Put tidies
				if err := mine.Put(sum, vector); err != nil {
					t.Error(err)
				}
				if got, ok := mine.Get(sum); ok && !slices.Equal(got, vector) {
					t.Errorf("%v, want %v", got, vector)
				}
			}
		})
	}
	wg.Wait()
	// Fewer where one process removed as old what another had just written again.
	err := reopen(v, 8*block).Put(Sum{}, make([]float32, v.width))
	if n := len(files(t, v)); err != nil || n == 0 || n > 8 {
		t.Errorf("%d files, want 1 to 8: %v", n, err)
	}
}
