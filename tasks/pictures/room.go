package pictures

import "context"

// room bounds the pixels of the pictures that are in memory at a time, whatever the number
// of workers: as many as two of the largest have that are read.
type room struct {
	unit int64         // pixels
	turn chan struct{} // held by who is on the way in, so that nobody waits with a part
	free chan struct{} // a unit of room each
}

// roomUnits is what the largest picture takes.
const roomUnits = 64

// newRoom is for pictures of up to limit pixels.
func newRoom(limit int64) *room {
	r := &room{unit: max(1, (limit+roomUnits-1)/roomUnits), turn: make(chan struct{}, 1), free: make(chan struct{}, 2*roomUnits)}
	for range cap(r.free) {
		r.free <- struct{}{}
	}
	return r
}

// enter waits for room for a picture and returns what gives it back. The error is that of
// ctx.
func (r *room) enter(ctx context.Context, pixels int64) (leave func(), err error) {
	want := int(min((pixels+r.unit-1)/r.unit, roomUnits))
	have := 0
	leave = func() {
		for range have {
			r.free <- struct{}{}
		}
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.turn }()
	for have < want {
		select {
		case <-r.free:
			have++
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// decode is DecodeBytes for a picture that takes room until use returns.
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

// Decoder reads pictures on any number of goroutines, which together hold no more pixels
// than two pictures of Limits.Pixels have.
type Decoder struct {
	limits Limits
	space  *room
}

// NewDecoder returns a decoder of pictures within limits.
func NewDecoder(limits Limits) *Decoder {
	return &Decoder{limits, newRoom(limits.fill().Pixels)}
}

// Decode calls use with the picture of a file, which is not to be kept longer: another may
// wait for its room. Errors are those of [Decode], or that of ctx where the picture waits in
// vain; use is not called then.
func (d *Decoder) Decode(ctx context.Context, path string, use func(*Picture)) error {
	data, _, err := Read(path, d.limits)
	if err != nil {
		return err
	}
	return d.space.decode(ctx, path, data, d.limits, use)
}
