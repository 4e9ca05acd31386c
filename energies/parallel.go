package energies

import (
	"runtime"
	"sync"
)

// serialWork is the number of elements below which a second goroutine costs more than it
// saves.
const serialWork = 1 << 14

// task is a range for a function of [Parallel].
type task struct {
	f              func(worker, lo, hi int)
	worker, lo, hi int
	done           *sync.WaitGroup
}

// helpers are goroutines that wait for tasks, one fewer than processors, started when first
// needed.
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

// Parallel calls f on ranges that cover [0, n), each with the number of a worker, on all
// processors when work, the number of elements of the whole, is worth it. What f computes for
// an element must not depend on its range. Parallel itself allocates nothing: a caller that
// keeps f allocates nothing either.
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
		default: // all are busy, as in a call within another
			f(t.worker, t.lo, t.hi)
			done.Done()
		}
	}
	f(0, 0, n/workers)
	done.Wait()
	waits.Put(done)
}
