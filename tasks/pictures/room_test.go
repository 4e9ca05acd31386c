package pictures

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// However many come at once, what is inside is never more than two of the largest.
func TestRoom(t *testing.T) {
	const limit = 6400
	r := newRoom(limit)
	var inside, most atomic.Int64
	var wg sync.WaitGroup
	for k := range 32 {
		wg.Go(func() {
			for i := range 50 {
				pixels := int64(1 + (k*977+i*331)%limit)
				leave, err := r.enter(t.Context(), pixels)
				if err != nil {
					t.Error(err)
					return
				}
				now := inside.Add(pixels)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				inside.Add(-pixels)
				leave()
			}
		})
	}
	wg.Wait()
	if m := most.Load(); m > 2*limit {
		t.Errorf("%d pixels inside, want at most %d", m, 2*limit)
	}
	if len(r.free) != cap(r.free) || len(r.turn) != 0 {
		t.Errorf("%d of %d units are free when all have left", len(r.free), cap(r.free))
	}
}

// A file waits until there is room for its picture, and gives up with the context, leaving
// all room to others.
func TestLoadWaitsForRoom(t *testing.T) {
	path := filepath.Join("testdata", "rgb.png")
	pre, err := read(`{"size": 16, "crop_size": 16}`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(path, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Limits: Limits{Pixels: int64(m.Width * m.Height)}}
	r := newRoom(o.Limits.Pixels)
	var leave [2]func()
	for k := range leave {
		if leave[k], err = r.enter(t.Context(), o.Limits.Pixels); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l := load(ctx, path, pre, o, r); !errors.Is(l.Err, context.Canceled) || l.Pixels != nil {
		t.Errorf("a file found room where there was none: %v", l.Err)
	}
	leave[0]()
	if l := load(t.Context(), path, pre, o, r); l.Err != nil || l.Pixels == nil {
		t.Errorf("a file found no room where there was some: %v", l.Err)
	}
	leave[1]()
	if len(r.free) != cap(r.free) || len(r.turn) != 0 {
		t.Errorf("%d of %d units are free", len(r.free), cap(r.free))
	}
}
