//go:build !unix

package experiment

import "time"

// newClock returns a function that gives the seconds since newClock was called.
func newClock() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}
