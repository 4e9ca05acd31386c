package session

import (
	"context"
	"errors"
	"sync"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Lazy computes each value on first use. The zero value is empty. It is safe for concurrent use.
type Lazy[K comparable, V any] struct {
	mu    sync.Mutex
	calls map[K]*call[V]
}

// call is a value being computed; it is ready when done is closed.
type call[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// Get returns the value of key. The first caller computes it. If ctx ends, Get returns its error and
// the computation continues in the background for later callers. Errors are not cached: the next call
// computes again.
func (l *Lazy[K, V]) Get(ctx context.Context, key K, compute func() (V, error)) (V, error) {
	l.mu.Lock()
	c := l.calls[key]
	if c == nil {
		if err := ctx.Err(); err != nil {
			l.mu.Unlock()
			var none V
			return none, err
		}
		if l.calls == nil {
			l.calls = map[K]*call[V]{}
		}
		c = &call[V]{done: make(chan struct{})}
		l.calls[key] = c
		go l.run(key, c, compute)
	}
	l.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

func (l *Lazy[K, V]) run(key K, c *call[V], compute func() (V, error)) {
	c.value, c.err = compute()
	if c.err != nil {
		l.mu.Lock()
		if l.calls[key] == c {
			delete(l.calls, key)
		}
		l.mu.Unlock()
	}
	close(c.done)
}

// Take removes the values whose keys match, waits for those being computed, and returns the values
// without error.
func (l *Lazy[K, V]) Take(match func(K) bool) []V {
	l.mu.Lock()
	var taken []*call[V]
	for k, c := range l.calls {
		if match(k) {
			taken = append(taken, c)
			delete(l.calls, k)
		}
	}
	l.mu.Unlock()
	var values []V
	for _, c := range taken {
		if <-c.done; c.err == nil {
			values = append(values, c.value)
		}
	}
	return values
}

// Pool opens sessions on first use. The zero value is empty. It is safe for concurrent use.
type Pool[K comparable] struct{ sessions Lazy[K, *Session] }

// Get returns the session of key. The first caller opens it; see Lazy.Get.
func (p *Pool[K]) Get(ctx context.Context, key K, build func() (*onnx.Model, error), o ort.Options) (*Session, error) {
	return p.sessions.Get(ctx, key, func() (*Session, error) {
		g, err := build()
		if err != nil {
			return nil, err
		}
		return Open(context.Background(), g, o) // shared by all callers, so one that gives up must not cancel it
	})
}

// Close closes the sessions whose keys match, including those being opened.
func (p *Pool[K]) Close(match func(K) bool) error {
	var all error
	for _, s := range p.sessions.Take(match) {
		all = errors.Join(all, s.Close())
	}
	return all
}
