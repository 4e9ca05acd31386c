package pictures

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// Loaded is a preprocessed file.
type Loaded struct {
	File string
	Sum  Sum // of its content; zero if it could not be read
	// Pixels is [3, height, width], as written by [Preprocessor.Apply]; nil if Err is set.
	Pixels []float32
	// Err is an *Error if this file cannot be used, or the error of the context if it ended first.
	Err error
}

// Options are the options of [Stream]. Zero fields mean the defaults.
type Options struct {
	// Workers is the number of files processed at a time; the default is one per core. Together they
	// hold at most as many pixels as two images of Limits.Pixels.
	Workers int
	Limits  Limits
	// Progress is called after each file, in the goroutine of the loop.
	Progress func(done, total int)
}

// Stream reads and preprocesses files in order, on several cores. It reads a few files ahead, so that
// decoding continues while the loop body runs. Leaving the loop stops the work, and the end of ctx ends
// the loop early.
func Stream(ctx context.Context, paths []string, pre *Preprocessor, o Options) iter.Seq[Loaded] {
	return func(yield func(Loaded) bool) {
		workers := o.Workers
		if workers <= 0 {
			workers = runtime.GOMAXPROCS(0)
		}
		workers = max(1, min(workers, len(paths)))
		ctx, cancel := context.WithCancel(ctx)
		// Each file has a channel for its result. A slot is a file being processed or waiting to be
		// consumed. Slots are assigned in order, so that the loop below never waits for a file that
		// waits for a slot.
		results := make([]chan Loaded, len(paths))
		for i := range results {
			results[i] = make(chan Loaded, 1)
		}
		next := make(chan int)
		slots := make(chan struct{}, 2*workers)
		space := newRoom(o.Limits.fill().Pixels)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			defer close(next)
			for i := range paths {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				select {
				case next <- i:
				case <-ctx.Done():
					return
				}
			}
		})
		for range workers {
			wg.Go(func() {
				for i := range next {
					results[i] <- load(ctx, paths[i], pre, o, space)
				}
			})
		}
		for i := range paths {
			var l Loaded
			select {
			case l = <-results[i]:
			case <-ctx.Done():
				return
			}
			<-slots
			if o.Progress != nil {
				o.Progress(i+1, len(paths))
			}
			if !yield(l) {
				return
			}
		}
	}
}

// load reads and preprocesses one file; space limits the pixels in memory. Err is that of ctx if it
// ends while waiting.
func load(ctx context.Context, path string, pre *Preprocessor, o Options, space *room) Loaded {
	l := Loaded{File: path}
	data, sum, err := readLimited(path, o.Limits)
	if err != nil {
		l.Err = err
		return l
	}
	l.Sum = sum
	l.Err = space.decode(ctx, path, data, o.Limits, func(m *Picture) {
		l.Pixels = make([]float32, pre.Values())
		pre.Apply(l.Pixels, m)
	})
	return l
}
