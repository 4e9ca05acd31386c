package pictures

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mixed is a folder of pictures of all kinds and of files that are none.
func mixed(t testing.TB) []string {
	t.Helper()
	dir := tree(t, map[string][]byte{
		"1.png": fixture(t, "rgb.png"), "2.txt": []byte("no picture"), "3.jpg": fixture(t, "420.jpg"), "4.png": fixture(t, "rgb.png")[:60],
		"5.gif": fixture(t, "rgb.gif"), "6.webp": gigantic(t)[webp], "7.webp": fixture(t, "lossy.webp"), "8.png": fixture(t, "tall.png"),
	})
	paths, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return append(paths, filepath.Join(dir, "absent"))
}

func TestLoad(t *testing.T) {
	paths := mixed(t)
	pre, err := read(`{"size": 16, "crop_size": 16}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{0, 1, 3, 64} {
		var steps []int
		all, err := loadAll(t.Context(), paths, pre, workers, func(done, total int) {
			if total != len(paths) {
				t.Errorf("total %d", total)
			}
			steps = append(steps, done)
		})
		if err != nil || len(all) != len(paths) || !slices.Equal(steps, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Fatalf("%d workers: %d results, progress %v, %v", workers, len(all), steps, err)
		}
		for i, l := range all {
			if l.File != paths[i] {
				t.Errorf("result %d is %s, want %s", i, l.File, paths[i])
			}
			if bad := i == 1 || i == 3 || i == 5 || i == 8; bad != (l.Err != nil) {
				t.Errorf("%s: %v", l.File, l.Err)
			}
			if l.Err != nil {
				if e, ok := errors.AsType[*Error](l.Err); !ok || e.File != l.File || l.Pixels != nil {
					t.Errorf("%s: %v", l.File, l.Err)
				}
				continue
			}
			m, err := Decode(l.File, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float32, pre.Values())
			pre.Apply(want, m)
			if !slices.Equal(l.Pixels, want) {
				t.Errorf("%s: other pixels than alone", l.File)
			}
			if _, sum, _ := Read(l.File, Limits{}); sum != l.Sum {
				t.Errorf("%s: sum %s, want %s", l.File, l.Sum, sum)
			}
		}
	}
	if all, err := loadAll(t.Context(), nil, pre, 0, nil); err != nil || len(all) != 0 {
		t.Errorf("no paths: %v, %v", all, err)
	}
}

// Files whose vectors are there are read but not decoded.
func TestStreamKnown(t *testing.T) {
	paths := mixed(t)
	pre, err := read(`{"size": 16, "crop_size": 16}`)
	if err != nil {
		t.Fatal(err)
	}
	v := OpenVectors(t.TempDir(), "model", pre, 1)
	decoded := func() (n int) {
		for l := range Stream(t.Context(), paths, pre, Options{Known: v.Has}) {
			if l.Pixels != nil {
				n++
				if err := v.Put(l.Sum, []float32{1}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return n
	}
	if first, second := decoded(), decoded(); first != 5 || second != 0 {
		t.Errorf("%d decoded, then %d", first, second)
	}
}

// A limit leaves out the same files whether their vectors are there or not.
func TestStreamKnownLimit(t *testing.T) {
	paths := mixed(t)
	pre, err := read(`{"size": 16, "crop_size": 16}`)
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]int64{} // of those that can be read
	for _, path := range paths {
		if p, err := Decode(path, Limits{}); err == nil {
			size[path] = int64(p.Width) * int64(p.Height)
		}
	}
	sizes := slices.Sorted(maps.Values(size))
	least, most := sizes[0], sizes[len(sizes)-1]
	for _, limit := range []int64{0, most, most - 1, least, least - 1} {
		var errs [2][]string
		for k, known := range []bool{false, true} {
			o := Options{Limits: Limits{Pixels: limit}, Known: func(Sum) bool { return known }}
			for l := range Stream(t.Context(), paths, pre, o) {
				text := ""
				if e, ok := l.Err.(*Error); ok && e.Problem == TooLarge {
					text = l.Err.Error()
				}
				errs[k] = append(errs[k], text)
			}
		}
		if !slices.Equal(errs[0], errs[1]) {
			t.Errorf("at most %d pixels: %q not known, %q known", limit, errs[0], errs[1])
		}
		for k, path := range paths {
			if n, ok := size[path]; ok && (errs[1][k] != "") != (limit != 0 && n > limit) {
				t.Errorf("%d pixels of at most %d: %q", n, limit, errs[1][k])
			}
		}
	}
}

// The loop's pace bounds how far work goes ahead, and leaving the loop ends it.
func TestStreamAhead(t *testing.T) {
	one := mixed(t)[0]
	paths := slices.Repeat([]string{one}, 200)
	pre, err := read(`{"size": 4, "crop_size": 4}`)
	if err != nil {
		t.Fatal(err)
	}
	var begun atomic.Int64
	n := 0
	for range Stream(t.Context(), paths, pre, Options{Workers: 3, Known: func(Sum) bool { begun.Add(1); return false }}) {
		n++
		if n == 10 {
			time.Sleep(50 * time.Millisecond)
			break
		}
	}
	if b := begun.Load(); b < 10 || b > 10+2*3 {
		t.Errorf("%d files begun for 10 taken", b)
	}
}

func TestLoadCancelled(t *testing.T) {
	paths := slices.Repeat(mixed(t)[:1], 100)
	pre, err := read(`{"size": 4, "crop_size": 4}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	all, err := loadAll(ctx, paths, pre, 2, func(done, _ int) {
		if done == 5 {
			once.Do(cancel)
		}
	})
	if !errors.Is(err, context.Canceled) || all != nil {
		t.Errorf("%d results, %v", len(all), err)
	}
}

// loadAll collects the results of Stream.
func loadAll(ctx context.Context, paths []string, pre *Preprocessor, workers int, progress func(done, total int)) (all []Loaded, err error) {
	for l := range Stream(ctx, paths, pre, Options{Workers: workers, Progress: progress}) {
		all = append(all, l)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return all, nil
}
