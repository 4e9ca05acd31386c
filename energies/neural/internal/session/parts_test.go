package session

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// TestParts: parts hold 3 MB of the largest activation, or as many elements as the largest weight, and
// there are enough of them for all workers, or one.
func TestParts(t *testing.T) {
	of := func(activation, weight int64, o ort.Options) Parts {
		n := shape.Sym("n")
		return NewParts(shape.Values{
			"x":      {Known: true, Shape: []shape.Dim{n, shape.D(8)}},
			"hidden": {Known: true, Shape: []shape.Dim{n.Mul(shape.D(2)), shape.D(activation / 2)}},
			"weight": {Known: true, Shape: []shape.Dim{shape.D(weight)}},
			"other":  {Known: true, Shape: []shape.Dim{shape.Sym("m"), shape.D(1 << 40)}},
			"rank":   {},
		}, "x", o)
	}
	image, dense := int64(64*28*28), int64(2048)
	for _, c := range []struct {
		p    Parts
		rows int
		want int
	}{
		{of(image, 64*64*9, ort.Options{Threads: 1}), 100, 7}, // of 16 rows
		{of(image, 64*64*9, ort.Options{Threads: 2}), 100, 8},
		{of(image, 64*64*9, ort.Options{Threads: 2}), 8, 2},
		{of(image, 64*64*9, ort.Options{Threads: 2}), 7, 1},   // too few rows for two parts
		{of(image, 64*64*9, ort.Options{Threads: 16}), 16, 1}, // and for sixteen
		{of(image, 1<<21, ort.Options{Threads: 2}), 100, 2},   // at least 44 rows
		{of(image, 1<<21, ort.Options{Threads: 2}), 87, 1},
		{of(dense, dense*dense, ort.Options{Threads: 2}), 100, 1},
		{of(image, 64*64*9, ort.Options{Threads: 2, Provider: "openvino:cpu,bf16"}), 100, 1},
		{Parts{}, 100, 1},
	} {
		n := c.p.Count(c.rows)
		if n != c.want {
			t.Errorf("%+v, %d rows: %d parts, want %d", c.p, c.rows, n, c.want)
		}
		at := 0
		for k := range n {
			lo, hi := c.p.Range(c.rows, k, n)
			if lo != at || lo%RowBlock != 0 || hi <= lo || hi-lo > max(c.p.most, c.rows/n+RowBlock) {
				t.Errorf("%+v, %d rows: part %d is [%d, %d)", c.p, c.rows, k, lo, hi)
			}
			at = hi
		}
		if at != c.rows {
			t.Errorf("%+v: parts have %d rows of %d", c.p, at, c.rows)
		}
	}
}

// TestParallel: every part runs once, and none is begun after an error.
func TestParallel(t *testing.T) {
	var runs [50]atomic.Int32
	if err := Parallel(len(runs), 3, func(k int) error { runs[k].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for k := range runs {
		if runs[k].Load() != 1 {
			t.Errorf("part %d ran %d times", k, runs[k].Load())
		}
	}
	broken := errors.New("broken")
	for _, workers := range []int{1, 3} {
		var begun atomic.Int32
		err := Parallel(1000, workers, func(k int) error {
			if begun.Add(1); k < 5 {
				return nil
			}
			return broken
		})
		if n := int(begun.Load()); err != broken || n < 7-workers || n > 5+workers {
			t.Errorf("%d workers: %v after %d parts", workers, err, n)
		}
	}
}
