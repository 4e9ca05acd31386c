package potts

import (
	"context"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
)

// OnGraph is the Potts model on a graph,
//
//	U(x) = Σ_{i<j} J_ij·[x_i = x_j],
//
// with the weights of the graph as J. It is immutable and safe for concurrent use.
type OnGraph struct {
	space   *energies.Space
	graph   *graph.Graph
	near    graph.Neighbours
	colours [][]int32
	divided *energies.Divided
}

var _ energies.Oracle = (*OnGraph)(nil)

// NewOnGraph returns the model with the given number of values per site. The error is an
// *energies.SpaceError.
func NewOnGraph(g *graph.Graph, values int) (*OnGraph, error) {
	m := &OnGraph{space: &energies.Space{Sites: g.Sites, Values: values}, graph: g, near: g.Neighbours(), colours: g.Colours()}
	m.divided = energies.NewDivided(m.answer)
	return m, m.space.Check()
}

// Space implements energies.Energy.
func (m *OnGraph) Space() *energies.Space { return m.space }

// Graph returns the couplings. It must not be modified.
func (m *OnGraph) Graph() *graph.Graph { return m.graph }

// Capabilities implements energies.Oracle.
func (m *OnGraph) Capabilities() energies.Capabilities {
	return energies.Capabilities{Answers: energies.Density | energies.Gradient | energies.Conditional | energies.Block, Colours: m.colours}
}

// LogDensity implements energies.Energy.
func (m *OnGraph) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return m.Answer(ctx, energies.Query{Want: energies.Density, X: x, U: u})
}

// LogDensityGrad implements energies.Differentiable. U is linear in the one-hot code of each site.
func (m *OnGraph) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	return m.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: u, Grad: g})
}

// Answer implements energies.Oracle.
func (m *OnGraph) Answer(ctx context.Context, q energies.Query) error {
	if !m.Capabilities().Answers.Has(q.Want) {
		return &energies.UnsupportedError{Want: q.Want}
	}
	return m.divided.Answer(ctx, q, 1, len(q.X.Codes)*m.space.Values, 0)
}

// answer answers the query for chains lo to hi-1.
func (m *OnGraph) answer(_ context.Context, q *energies.Query, _ []float64, lo, hi int) error {
	s, n := m.space.Values, len(q.Sites)
	for c := lo; c < hi; c++ {
		x := q.X.Chain(c)
		switch q.Want {
		case energies.Conditional:
			m.votes(q.LogP[c*s:(c+1)*s], x, q.Site)
		case energies.Block:
			for k, i := range q.Sites {
				m.votes(q.LogP[(c*n+k)*s:(c*n+k+1)*s], x, int(i))
			}
		default:
			q.U[c] = m.slopes(x, q.Grad, c)
		}
	}
	return nil
}

// votes sets lp to the contribution to U of site i with each value.
func (m *OnGraph) votes(lp []float64, x []int32, i int) {
	clear(lp)
	for k := m.near.Start[i]; k < m.near.Start[i+1]; k++ {
		lp[x[m.near.To[k]]] += m.near.Weight[k]
	}
}

// slopes returns U of chain c and, unless g is nil, sets g to its gradient.
func (m *OnGraph) slopes(x []int32, g []float32, c int) float64 {
	u, s := 0.0, m.space.Values
	for i, v := range x {
		if g != nil {
			clear(g[(c*len(x)+i)*s : (c*len(x)+i+1)*s])
		}
		for k := m.near.Start[i]; k < m.near.Start[i+1]; k++ {
			w := x[m.near.To[k]]
			if w == v {
				u += m.near.Weight[k] / 2
			}
			if g != nil {
				g[(c*len(x)+i)*s+int(w)] += float32(m.near.Weight[k])
			}
		}
	}
	return u
}
