package mlm

import (
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

func memoEnergy(t *testing.T, remember int64) *Infill {
	t.Helper()
	model, err := onnx.Load("testdata/bert/legacy-14/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(model, Options{MaskID: 4, Remember: remember, Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	e, err := m.Infill(Text{IDs: []int32{2, 20, 4, 33, 41, 4, 27, 3}, Blanks: []int{2, 5}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A remembered state gives the very bytes that the model gave, and rooms of every
// size give what no memory gives: batches repeat states, within and between them.
func TestMemoChangesNothing(t *testing.T) {
	plain := memoEnergy(t, -1)
	if plain.memo != nil {
		t.Fatal("remembers although told not to")
	}
	row := plain.space.Sites * plain.space.Values
	for _, room := range []int64{1 << 20, int64(4*row+160) * 3, 10} {
		e := memoEnergy(t, room)
		for step := range 6 {
			x := energies.NewBatch(e.Space(), 7)
			for i := range x.Codes {
				x.Codes[i] = int32(6 + (i*i+step*i/3)%5)
			}
			for _, p := range []product{scoreOnly, withGrad, withTilt} {
				u, want := make([]float64, 7), make([]float64, 7)
				var g, wantG []float32
				if p != scoreOnly {
					g, wantG = make([]float32, 7*row), make([]float32, 7*row)
				}
				if err := e.evaluate(t.Context(), p, u, g, x); err != nil {
					t.Fatal(err)
				}
				if err := plain.evaluate(t.Context(), p, want, wantG, x); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(u, want) || !slices.Equal(g, wantG) {
					t.Fatalf("room %d, step %d, product %d: differs from a fresh evaluation", room, step, p)
				}
			}
		}
		if e.memo.room < 0 {
			t.Errorf("room %d: %d bytes over", room, -e.memo.room)
		}
	}
}

// The model runs once on a state that stands at several chains, and not at all on
// one that is remembered.
func TestMemoSavesRuns(t *testing.T) {
	e := memoEnergy(t, 0)
	x := energies.Batch{Space: e.Space(), Codes: []int32{7, 8, 9, 9, 7, 8, 7, 9}}
	u, g := make([]float64, 4), make([]float32, 4*e.space.Sites*e.space.Values)
	row := e.space.Sites * e.space.Values
	todo := e.recall(withTilt, u, g, row, x)
	if got, want := todo.x.Codes, []int32{7, 8, 9, 9, 7, 9}; !slices.Equal(got, want) {
		t.Errorf("the model is to be run on %v, want %v", got, want)
	}
	if err := e.evaluate(t.Context(), withTilt, u, g, x); err != nil {
		t.Fatal(err)
	}
	if todo := e.recall(withTilt, u, g, row, x); len(todo.keys) != 0 {
		t.Errorf("%d states are not remembered", len(todo.keys))
	}
	if n := e.m.Sequences(); n != 6 {
		t.Errorf("%d sequences went through the model, want 6: three states of two blanks", n)
	}
	if todo := e.recall(withGrad, u, g, row, x); len(todo.keys) != 3 {
		t.Errorf("a tilt was taken for a gradient: %d states to run, want 3", len(todo.keys))
	}
	e.Forget()
	if todo := e.recall(withTilt, u, g, row, x); len(todo.keys) != 3 {
		t.Errorf("%d states to run after forgetting, want 3", len(todo.keys))
	}
}
