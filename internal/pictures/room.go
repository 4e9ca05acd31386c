package pictures

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// room limits the pixels in memory, for any number of workers, to twice those of the largest allowed
// picture.
type room struct {
	limit int64 // pixels of the largest allowed picture
	free  *semaphore.Weighted
}

func newRoom(limit int64) *room {
	return &room{limit, semaphore.NewWeighted(2 * limit)}
}

// enter waits for room for a picture and returns a function that releases it. The error is that of ctx.
func (r *room) enter(ctx context.Context, pixels int64) (leave func(), err error) {
	pixels = min(pixels, r.limit)
	if err := r.free.Acquire(ctx, pixels); err != nil {
		return nil, err
	}
	return func() { r.free.Release(pixels) }, nil
}

// decode is DecodeBytes for a picture that occupies room until use returns.
func (r *room) decode(ctx context.Context, name string, data []byte, limits Limits, use func(*Picture)) error {
	leave := func() {}
	defer func() { leave() }()
	m, err := decodeBytes(name, data, limits, func(pixels int64) error {
		out, err := r.enter(ctx, pixels)
		if err == nil {
			leave = out
		}
		return err
	})
	if err == nil {
		use(m)
	}
	return err
}

// Decoder reads pictures on any number of goroutines. Together they hold at most as many pixels as two
// pictures of Limits.Pixels.
type Decoder struct {
	limits Limits
	space  *room
}

// NewDecoder returns a decoder with the given limits.
func NewDecoder(limits Limits) *Decoder {
	return &Decoder{limits, newRoom(limits.fill().Pixels)}
}

// Decode calls use with the picture of a file. use must not retain it. Errors are those of [Decode], or
// that of ctx if it ends while waiting; then use is not called.
func (d *Decoder) Decode(ctx context.Context, path string, use func(*Picture)) error {
	data, _, err := readLimited(path, d.limits)
	if err != nil {
		return err
	}
	return d.space.decode(ctx, path, data, d.limits, use)
}
