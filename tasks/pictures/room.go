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
