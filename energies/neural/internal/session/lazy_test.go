package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLazyHonoursContext: while one caller computes a value for long, others return at the
// end of their context, and use other keys.
func TestLazyHonoursContext(t *testing.T) {
	var l Lazy[string, int]
	release, started := make(chan struct{}), make(chan struct{})
	slow := func() (int, error) { close(started); <-release; return 7, nil }
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := l.Get(ctx, "slow", slow); first <- err }()
	<-started
	soon, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := l.Get(soon, "slow", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second caller waits past its deadline: %v", err)
	}
	if v, err := l.Get(t.Context(), "other", func() (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Errorf("another key: %d, %v", v, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first caller: %v", err)
	}
	close(release)
	if v, err := l.Get(t.Context(), "slow", nil); v != 7 || err != nil {
		t.Errorf("the value that was finished in the background: %d, %v", v, err)
	}
}

// TestLazyRetries: an error is not kept, and Take returns only values.
func TestLazyRetries(t *testing.T) {
	var l Lazy[int, int]
	broken := errors.New("broken")
	if _, err := l.Get(t.Context(), 1, func() (int, error) { return 0, broken }); err != broken {
		t.Errorf("got %v", err)
	}
	for want := range 3 {
		if v, err := l.Get(t.Context(), 1+want, func() (int, error) { return want, nil }); v != want || err != nil {
			t.Errorf("got %d, %v, want %d", v, err, want)
		}
	}
	if got := l.Take(func(k int) bool { return k > 1 }); len(got) != 2 {
		t.Errorf("two values match, got %v", got)
	}
	if v, _ := l.Get(t.Context(), 2, func() (int, error) { return 9, nil }); v != 9 {
		t.Errorf("a value that was taken is still there: %d", v)
	}
}
