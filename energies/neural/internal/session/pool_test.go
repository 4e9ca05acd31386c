package session

import (
	"errors"
	"testing"
)

// TestPool: an error is not kept, and a session is opened once.
func TestPool(t *testing.T) {
	var p Pool[int]
	broken := errors.New("broken")
	if _, err := p.Get(1, func() (*Session, error) { return nil, broken }); err != broken {
		t.Errorf("got %v", err)
	}
	want := &Session{}
	for range 2 {
		got, err := p.Get(1, func() (*Session, error) { s := want; want = nil; return s, nil })
		if got == nil || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	}
}
