// Package export writes energies of known form as ONNX models. The input x holds the numbers that the
// codes represent, [batch, site], or one-hot rows for categorical spaces, [batch, site, value]. The
// output U is the log-density in nats, [batch].
package export

import (
	"errors"
	"fmt"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/energies/potts"
	"github.com/gradhop/gradhop/energies/rbm"
	"github.com/gradhop/gradhop/energies/selection"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Model returns the ONNX model of an energy, with float32 weights, or float64 if double is set. The
// error matches errors.ErrUnsupported if the energy has no ONNX form.
func Model(e energies.Energy, double bool) (*onnx.Model, error) {
	if n, ok := e.(*known.Named); ok {
		e = n.Energy
	}
	b := &net{space: e.Space(), double: double, m: &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "energy"}}}
	var err error
	if b.Builder, err = build.New(b.m, "energy/", nil); err != nil {
		return nil, err
	}
	var u build.Value
	switch m := e.(type) {
	case *pairwise.Model:
		u = b.pairwise(m)
	case *potts.OnGraph:
		u = b.potts(m)
	case *rbm.Model:
		u = b.rbm(m)
	case *rbm.Joint:
		u = b.joint(m)
	case *selection.Model:
		u = b.selection(m)
	default:
		return nil, fmt.Errorf("export: an energy of type %T has no ONNX form: %w", e, errors.ErrUnsupported)
	}
	b.Output("U", b.Reshape(u, b.Ints(-1)))
	return b.m, b.Err()
}

// net is a model under construction.
type net struct {
	*build.Builder
	m      *onnx.Model
	space  *energies.Space
	double bool
}

// input adds the input x.
func (b *net) input() build.Value {
	elem := onnx.Float
	if b.double {
		elem = onnx.Double
	}
	dims := []shape.Dim{shape.Sym("batch"), shape.D(int64(b.space.Sites))}
	if b.space.Kind == energies.Categorical {
		dims = append(dims, shape.D(int64(b.space.Values)))
	}
	return b.Input("x", elem, dims...)
}

// tensor adds a constant.
func (b *net) tensor(v []float64, dims ...int64) build.Value {
	if b.double {
		return b.Const(onnx.NewDouble("", dims, v))
	}
	w := make([]float32, len(v))
	for k, x := range v {
		w[k] = float32(x)
	}
	return b.Const(onnx.NewFloat("", dims, w))
}

// ends returns x at both ends of the edges, gathered along axis 1, and the weights of the edges.
func (b *net) ends(x build.Value, g edges) (from, to build.Value, weight []float64) {
	var i, j []int64
	for _, e := range g.Graph().Edges {
		i, j, weight = append(i, int64(e.I)), append(j, int64(e.J)), append(weight, e.Weight)
	}
	return b.Gather(x, b.Ints(i...), 1), b.Gather(x, b.Ints(j...), 1), weight
}

func (b *net) pairwise(m *pairwise.Model) build.Value {
	x := b.input()
	u := b.Add(b.MatMul(x, b.tensor(m.Field(), int64(b.space.Sites), 1)), b.Scalar(m.Offset(), x))
	if len(m.Graph().Edges) == 0 {
		return u
	}
	from, to, weight := b.ends(x, m)
	return b.Add(u, b.MatMul(b.Mul(from, to), b.tensor(weight, int64(len(weight)), 1)))
}

func (b *net) potts(m *potts.OnGraph) build.Value {
	x := b.input()
	if len(m.Graph().Edges) == 0 {
		return b.Scale(b.ReduceSum(x, []int64{1, 2}, false), 0)
	}
	from, to, weight := b.ends(x, m)
	return b.MatMul(b.ReduceSum(b.Mul(from, to), []int64{2}, false), b.tensor(weight, int64(len(weight)), 1))
}

func (b *net) rbm(m *rbm.Model) build.Value {
	x, d := b.input(), int64(b.space.Sites)
	weight, bias, hidden := m.Weights()
	h := int64(len(hidden))
	t := b.Add(b.MatMul(x, b.Transpose(b.tensor(weight, h, d), 1, 0)), b.tensor(hidden, h))
	return b.Add(b.MatMul(x, b.tensor(bias, d, 1)), b.ReduceSum(b.Op("Softplus", []build.Value{t}), []int64{1}, true))
}

func (b *net) joint(m *rbm.Joint) build.Value {
	weight, bias, hidden := m.Machine().Weights()
	all, d, h := b.input(), int64(len(bias)), int64(len(hidden))
	sites := make([]int64, d+h)
	for i := range sites {
		sites[i] = int64(i)
	}
	x, z := b.Gather(all, b.Ints(sites[:d]...), 1), b.Gather(all, b.Ints(sites[d:]...), 1)
	t := b.Add(b.MatMul(x, b.Transpose(b.tensor(weight, h, d), 1, 0)), b.tensor(hidden, h))
	return b.Add(b.MatMul(x, b.tensor(bias, d, 1)), b.ReduceSum(b.Mul(t, z), []int64{1}, true))
}

func (b *net) selection(m *selection.Model) build.Value {
	x, d := b.input(), int64(b.space.Sites)
	data, y := m.Data()
	n := int64(len(y))
	// log sigmoid(t) if y is 1 and log sigmoid(-t) if y is 0
	sign := make([]float64, n)
	for j := range sign {
		if sign[j] = 1; y[j] {
			sign[j] = -1
		}
	}
	t := b.MatMul(x, b.Transpose(b.tensor(data, n, d), 1, 0))
	loss := b.Op("Softplus", []build.Value{b.Mul(t, b.tensor(sign, n))})
	return b.Neg(b.ReduceSum(loss, []int64{1}, true))
}

// edges is an energy defined on a graph.
type edges interface{ Graph() *graph.Graph }
