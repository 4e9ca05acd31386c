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

func (e *counted) note(x Batch) { e.seen = append(e.seen, slices.Clone(x.Codes)) }

func (e *counted) LogDensity(ctx context.Context, u []float64, x Batch) error {
	e.note(x)
	return e.wide.LogDensity(ctx, u, x)
}

func (e *counted) LogDensityGrad(ctx context.Context, u []float64, g []float32, x Batch) error {
	e.note(x)
	return e.wide.LogDensityGrad(ctx, u, g, x)
}

func (e *counted) LogDensityTilt(ctx context.Context, u []float64, p []float32, x Batch) error {
	return e.LogDensityGrad(ctx, u, p, x)
}

func (e *counted) LogConditional(ctx context.Context, lp []float64, site int, x Batch) error {
	e.note(x)
	return e.wide.LogConditional(ctx, lp, site, x)
}

func newCounted() *counted {
	space := Space{Sites: 2, Values: 5}
	return &counted{wide: wide{sloped{line{space, 0.3, -1}}, Gradient | Tilt | Conditionals, 0}}
}

// answer asks for U, and for what a capability names.
func answer(t *testing.T, e Energy, want Capability, x Batch) (u []float64, g []float32) {
	t.Helper()
	u, g = make([]float64, x.Chains()), make([]float32, len(x.Codes)*x.Space.Values)
	var err error
	switch want {
	case 0:
		err = e.LogDensity(t.Context(), u, x)
	case Gradient:
		err = e.(Differentiable).LogDensityGrad(t.Context(), u, g, x)
	case Tilt:
		err = e.(Tilter).LogDensityTilt(t.Context(), u, g, x)
	case Conditionals:
		var c Conditional
		if c, err = As[Conditional]("", e); err == nil {
			err = c.LogConditional(t.Context(), make([]float64, len(u)*x.Space.Values), 0, x)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return u, g
}

// A cached state gives the very numbers of the energy, whatever the size of the cache.
func TestMemoChangesNothing(t *testing.T) {
	plain := newCounted()
	const chains = 7
	for _, room := range []int64{1 << 20, 600, 10} {
		m := NewMemo(newCounted(), room)
		for step := range 6 {
			x := NewBatch(m.Space(), chains)
			for i := range x.Codes {
				x.Codes[i] = int32((i*i + step*i/3) % 5)
			}
			for _, want := range []Capability{0, Gradient, Tilt} {
				gotU, got := answer(t, m, want, x)
				if u, g := answer(t, plain, want, x); !slices.Equal(gotU, u) || !slices.Equal(got, g) {
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
		{Conditionals, false, x.Codes},
		{Conditionals, false, x.Codes},
	} {
		e.seen = nil
		if c.forget {
			m.Forget()
		}
		answer(t, m, c.want, x)
		if got := slices.Concat(e.seen...); !slices.Equal(got, c.seen) {
			t.Errorf("%s, forgotten %v: evaluated at %v, want %v", c.want, c.forget, got, c.seen)
		}
	}
}
