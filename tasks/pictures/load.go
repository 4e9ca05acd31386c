package pictures

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
)

// Loaded is a file made ready for a vision tower.
type Loaded struct {
	File string
	Sum  Sum // of its content; zero if it could not be read
	// Pixels are [3, height, width] as [Preprocessor.Apply] writes them; nil if Err is
	// set, or if the file was not wanted.
	Pixels []float32
	// Err is an *Error if this file cannot be used, or the error of a context that was
	// done before it could be.
	Err error
}

// Options are those of [Stream]. Zero fields mean the defaults.
type Options struct {
	// Workers is the number of files worked on at a time; default one a core. Each holds
	// a picture in memory, but together they hold no more pixels than two pictures of
	// Limits.Pixels have.
	Workers int
	Limits  Limits
	// Known reports that a file with this content need not be decoded, which leaves its
	// Pixels nil: [Vectors.Has] is one. Limits hold for such a file as for any other, so
	// that what is known does not say which files are used. It is called concurrently.
	// Default none is known.
	Known func(Sum) bool
	// Progress is called after each file, in the goroutine that ranges.
	Progress func(done, total int)
}

// Stream reads and prepares files, in order, on several cores. It reads a few files ahead of
// the loop over it, so that decoding goes on while the loop body runs a vision tower, and
// never holds more than that. Leaving the loop ends the work; a context that is done ends
// the loop early.
func Stream(ctx context.Context, paths []string, pre *Preprocessor, o Options) iter.Seq[Loaded] {
	return func(yield func(Loaded) bool) {
		workers := o.Workers
		if workers <= 0 {
			workers = runtime.GOMAXPROCS(0)
		}
		workers = max(1, min(workers, len(paths)))
		ctx, cancel := context.WithCancel(ctx)
		// Each file has a channel for its result. A slot is a file that is under way or
		// waits to be taken; they are given out in order, so that the loop below never
		// waits for a file that waits for a slot.
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

// load reads and prepares one file, its picture in space. Err is that of ctx where it waits
// in vain.
func load(ctx context.Context, path string, pre *Preprocessor, o Options, space *room) Loaded {
	l := Loaded{File: path}
	data, sum, err := Read(path, o.Limits)
	if err != nil {
		l.Err = err
		return l
	}
	l.Sum = sum
	if o.Known != nil && o.Known(sum) {
		l.Err = fits(path, data, o.Limits)
		return l
	}
	l.Err = space.decode(ctx, path, data, o.Limits, func(m *Picture) {
		l.Pixels = make([]float32, pre.Values())
		pre.Apply(l.Pixels, m)
	})
	return l
}

// errFits stops a decoder.
var errFits = errors.New("pictures: small enough")

// fits looks at the size that a picture says it has, and decodes nothing.
func fits(name string, data []byte, limits Limits) error {
	_, err := decodeBytes(name, data, limits, func(int64) error { return errFits })
	if err == errFits {
		return nil
	}
	return err
}

// Load is [Stream] into a slice, in the order of paths: for sets of pictures that fit in
// memory. workers 0 means one a core; progress may be nil. Files that cannot be used are in
// it with their Err. The error is that of ctx.
func Load(ctx context.Context, paths []string, pre *Preprocessor, workers int, progress func(done, total int)) ([]Loaded, error) {
	all := make([]Loaded, 0, len(paths))
	for l := range Stream(ctx, paths, pre, Options{Workers: workers, Progress: progress}) {
		all = append(all, l)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return all, nil
}
