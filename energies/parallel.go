package energies

import (
	"runtime"
	"sync"
)

// serialWork is the number of elements below which parallel execution does not pay.
const serialWork = 1 << 14

// task is a range for a function of [Parallel].
type task struct {
	f              func(worker, lo, hi int)
	worker, lo, hi int
	done           *sync.WaitGroup
}

// helpers is the queue of the worker goroutines, one fewer than processors, started on first use.
var helpers = sync.OnceValue(func() chan<- task {
	tasks := make(chan task)
	for range runtime.GOMAXPROCS(0) - 1 {
		go func() {
			for t := range tasks {
				t.f(t.worker, t.lo, t.hi)
				t.done.Done()
			}
		}()
	}
	return tasks
})

var waits = sync.Pool{New: func() any { return new(sync.WaitGroup) }}

// Parallel calls f on ranges that cover [0, n), each with the index of a worker. It uses all processors
// if work, the total number of elements, is large enough. The result of f for an element must not
// depend on the range. Parallel itself does not allocate.
func Parallel(n, work int, f func(worker, lo, hi int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if work < serialWork || workers < 2 {
		f(0, 0, n)
		return
	}
	tasks, done := helpers(), waits.Get().(*sync.WaitGroup)
	for w := 1; w < workers; w++ {
		t := task{f, w, w * n / workers, (w + 1) * n / workers, done}
		done.Add(1)
		select {
		case tasks <- t:
		default: // all are busy, for example in a nested call
			f(t.worker, t.lo, t.hi)
			done.Done()
		}
	}
	f(0, 0, n/workers)
	done.Wait()
	waits.Put(done)
}
