package pictures

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// empty reports whether all room is free.
func (r *room) empty() bool {
	free := r.free.TryAcquire(2 * r.limit)
	if free {
		r.free.Release(2 * r.limit)
	}
	return free
}

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
	if !r.empty() {
		t.Error("not all room is free when all have left")
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
	if !r.empty() {
		t.Error("not all room is free")
	}
}

// Pictures of a Decoder take room until their use returns, and no longer; what is beyond
// the limits is not decoded.
func TestDecoder(t *testing.T) {
	path := filepath.Join("testdata", "rgb.png")
	d := NewDecoder(Limits{Pixels: 11 * 17})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reached := 0
	use := func(inner func()) func(*Picture) {
		return func(p *Picture) {
			if p.Width*p.Height != 11*17 {
				t.Errorf("%d x %d", p.Width, p.Height)
			}
			reached++
			inner()
		}
	}
	err := d.Decode(t.Context(), path, use(func() {
		err := d.Decode(t.Context(), path, use(func() {
			if err := d.Decode(ctx, path, use(func() {})); !errors.Is(err, context.Canceled) {
				t.Errorf("a third picture found room: %v", err)
			}
		}))
		if err != nil {
			t.Error(err)
		}
	}))
	if err != nil || reached != 2 || !d.space.empty() {
		t.Errorf("%d pictures were decoded, all room is free: %v: %v", reached, d.space.empty(), err)
	}
	for limits, path := range map[Limits]string{{Pixels: 11*17 - 1}: path, {Bytes: 10}: path, {}: filepath.Join("testdata", "none.png")} {
		err := NewDecoder(limits).Decode(t.Context(), path, func(*Picture) { t.Errorf("%+v: %s was decoded", limits, path) })
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%+v: %s: %v", limits, path, err)
		}
	}
}
