package pairwise_test

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/energies/table"
)

// TestModel compares U with the sum of the definition, and the gradient and conditionals with differences of it.
func TestModel(t *testing.T) {
	g, err := graph.New(4, []graph.Edge{{I: 0, J: 1, Weight: 0.6}, {I: 1, J: 2, Weight: -0.8}, {I: 0, J: 3, Weight: 0.3}})
	if err != nil {
		t.Fatal(err)
	}
	field := []float64{0.2, -0.3, 0.1, 0.4}
	for _, kind := range []energies.Kind{energies.Binary, energies.Spin} {
		m, err := pairwise.New(kind, g, field, 1.5)
		if err != nil || m.Regular() != nil {
			t.Fatal(err, "or a graph of several degrees counts as regular")
		}
		all, err := table.Enumerate(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		grad, u := make([]float32, 2*len(all.X.Codes)), make([]float64, all.Len())
		if err := m.LogDensityGrad(context.Background(), u, grad, all.X); err != nil {
			t.Fatal(err)
		}
		for k := range all.Len() {
			x, want := all.X.Chain(k), 1.5
			number := func(i int32) float64 { return float64(m.Space().Number(x[i])) }
			for i, h := range field {
				want += h * number(int32(i))
			}
			for _, e := range g.Edges {
				want += e.Weight * number(e.I) * number(e.J)
			}
			if math.Abs(all.U[k]-want) > 1e-12 || u[k] != all.U[k] {
				t.Fatalf("%v %v: U %v, with the gradient %v, want %v", kind, x, all.U[k], u[k], want)
			}
			for i := range x {
				change, row := difference(all, k, i), grad[2*(4*k+i):]
				if got := float64(row[1] - row[0]); math.Abs(got-change) > 1e-6 {
					t.Fatalf("%v %v, site %d: gradient %v, want %v", kind, x, i, got, change)
				}
			}
		}
	}
}

// difference is U with code 1 at site i of state k minus U with code 0.
func difference(all *table.Enumeration, k, i int) float64 {
	x := append([]int32(nil), all.X.Chain(k)...)
	x[i] = 1
	one := all.U[all.Find(x)]
	x[i] = 0
	return one - all.U[all.Find(x)]
}

// TestRegular: the log-odds of a site are those of the number of its neighbours with code 1, and U is that of the two
// counts, to the bit.
func TestRegular(t *testing.T) {
	for _, sides := range [][]int{{3, 3}, {6}, {2, 2, 2}, {2, 4}} {
		for _, kind := range []energies.Kind{energies.Binary, energies.Spin} {
			g, err := graph.Lattice(sides, 0.37, true)
			if err != nil {
				t.Fatal(err)
			}
			field := make([]float64, g.Sites)
			for i := range field {
				field[i] = -0.21
			}
			m, err := pairwise.New(kind, g, field, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			r := m.Regular()
			if r == nil {
				t.Fatalf("%v: not regular", sides)
			}
			all, err := table.Enumerate(context.Background(), m)
			if err != nil {
				t.Fatal(err)
			}
			for k := range all.Len() {
				x, ones, ends := all.X.Chain(k), 0, 0
				for i, v := range x {
					near := 0
					for _, j := range r.To[i*r.Degree : (i+1)*r.Degree] {
						near += int(x[j])
					}
					ones, ends = ones+int(v), ends+int(v)*near
					if want := difference(all, k, i); math.Abs(r.Odds[near]-want) > 1e-10 {
						t.Fatalf("%v %v, state %v, site %d: log-odds %v, want %v", sides, kind, x, i, r.Odds[near], want)
					}
				}
				if got := r.Density(ones, ends/2); got != all.U[k] {
					t.Fatalf("%v %v, state %v: U of the counts is %v, want %v", sides, kind, x, got, all.U[k])
				}
			}
			g.Edges[1].Weight = 0.2
			if m, err := pairwise.New(kind, g, field, 0); err != nil || m.Regular() != nil {
				t.Errorf("%v: regular with two couplings (%v)", sides, err)
			}
		}
	}
}
