package energies

import (
	"context"
	"slices"
	"testing"
)

// counted is an energy that lists the states it is evaluated at.
type counted struct {
	wide
	seen [][]int32
}

func (e *counted) Answer(ctx context.Context, q Query) error {
	e.seen = append(e.seen, slices.Clone(q.X.Codes))
	if q.Want == Tilt {
		q.Want, q.Grad = Gradient, q.Tilt
		q.U = q.U[:len(q.U):len(q.U)]
	}
	return e.wide.Answer(ctx, q)
}

func newCounted() *counted {
	space := Space{Sites: 2, Values: 5}
	return &counted{wide: wide{sloped{line{space, 0.3, -1}}, Capabilities{Answers: Density | Gradient | Tilt | Conditional}}}
}

// A cached state gives the very numbers of the energy, whatever the size of the cache.
func TestMemoChangesNothing(t *testing.T) {
	plain := newCounted()
	const chains, row = 7, 10
	for _, room := range []int64{1 << 20, 600, 10} {
		m := NewMemo(newCounted(), room)
		for step := range 6 {
			x := NewBatch(m.Space(), chains)
			for i := range x.Codes {
				x.Codes[i] = int32((i*i + step*i/3) % 5)
			}
			for _, want := range []Capability{Density, Gradient, Tilt} {
				ask := func(e Oracle) Query {
					q := Query{Want: want, X: x, U: make([]float64, chains)}
					switch want {
					case Gradient:
						q.Grad = make([]float32, chains*row)
					case Tilt:
						q.Tilt = make([]float32, chains*row)
					}
					if err := e.Answer(t.Context(), q); err != nil {
						t.Fatal(err)
					}
					return q
				}
				got, fresh := ask(m), ask(plain)
				if !slices.Equal(got.U, fresh.U) || !slices.Equal(got.Grad, fresh.Grad) || !slices.Equal(got.Tilt, fresh.Tilt) {
					t.Fatalf("room %d, step %d, %s: differs from a fresh evaluation", room, step, want)
				}
			}
		}
		if m.room < 0 {
			t.Errorf("room %d: %d bytes over", room, -m.room)
		}
	}
}

// The energy is asked once for a state that several chains are in, not at all for a cached
// one, and separately for each kind of query.
func TestMemoSavesEvaluations(t *testing.T) {
	e := newCounted()
	m := NewMemo(e, 1<<20)
	x := Batch{Space: m.Space(), Codes: []int32{1, 2, 3, 3, 1, 2, 1, 3}}
	for _, c := range []struct {
		want   Capability
		forget bool
		seen   []int32
	}{
		{Tilt, false, []int32{1, 2, 3, 3, 1, 3}},
		{Tilt, false, nil},
		{Gradient, false, []int32{1, 2, 3, 3, 1, 3}},
		{Tilt, true, []int32{1, 2, 3, 3, 1, 3}},
		{Conditional, false, x.Codes},
		{Conditional, false, x.Codes},
	} {
		e.seen = nil
		if c.forget {
			m.Forget()
		}
		q := Query{Want: c.want, X: x}
		switch c.want {
		case Conditional:
			q.LogP = make([]float64, 20)
		default:
			q.U, q.Grad, q.Tilt = make([]float64, 4), make([]float32, 40), make([]float32, 40)
		}
		if err := m.Answer(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if got := slices.Concat(e.seen...); !slices.Equal(got, c.seen) {
			t.Errorf("%s, forgotten %v: evaluated at %v, want %v", c.want, c.forget, got, c.seen)
		}
	}
}
