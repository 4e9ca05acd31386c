package known

import (
	"runtime"
	"testing"
)

// mediumSizes have a description of every form without a file whose energy takes megabytes.
var mediumSizes = map[string]string{
	"bernoulli": "bernoulli:100000,0.2", "categorical": "categorical:20000x10", "fhmm": "fhmm:3000x10,1", "gaussian-bernoulli": "gaussian-bernoulli:500",
	"ising": "ising:30x30x30,0.3", "logistic": "logistic:100x10000,1", "maxcut": "maxcut:200x200,1", "mis": "mis:200x200,1", "potts": "potts:200x200,30,1",
	"facility": "facility:100x400,1,9", "quenched": "quenched:10x26214,1", "rbm": "rbm:784x500,1", "rbm-joint": "rbm-joint:784x500,1",
}

// TestSize: the estimate is the memory that an energy of each form keeps (within 2%), or up to eight times as
// much, and its space is that of the energy.
func TestSize(t *testing.T) {
	for _, f := range forms {
		text := mediumSizes[f.name]
		size, err := SizeOf(text)
		if err != nil {
			t.Fatalf("form %s: %v", f.name, err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		if size.Bytes < 0.98*kept || size.Bytes > 8*kept {
			t.Errorf("%s: estimated %.3g bytes, it keeps %.3g", text, size.Bytes, kept)
		}
		if s := e.Space(); size.Sites != float64(s.Sites) || size.Values != float64(s.Values) {
			t.Errorf("%s: estimated %g sites of %g values, it has %s", text, size.Sites, size.Values, s)
		}
		runtime.KeepAlive(e)
	}
}

// TestSizeAbsurd: the largest dimensions give an estimate without overflow and without memory.
func TestSizeAbsurd(t *testing.T) {
	for _, f := range forms {
		text := f.name + ":268435456x268435456,1000000,1"
		if f.most < 2 {
			text = f.name + ":268435456x268435456,1"
		}
		if f.most == 0 {
			text = f.name + ":268435456x268435456"
		}
		size, err := SizeOf(text)
		if err != nil || size.Bytes < 1e9 {
			t.Errorf("%s: %g bytes (%v)", text, size.Bytes, err)
		}
	}
}
