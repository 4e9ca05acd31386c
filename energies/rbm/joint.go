package rbm

import (
	"context"

	"github.com/gradhop/gradhop/energies"
)

// Joint is the machine with its hidden units kept,
//
//	U(x, z) = bᵀx + cᵀz + zᵀWx,   x and z binary.
//
// Its sites are those of x, then those of z. It has two colours, the layers: coloured Gibbs draws
// z given x and x given z, as block Gibbs for RBMs does (Hinton 2002). It answers Gradient, which
// is exact for single changes, Conditional and Block. It is immutable and safe for concurrent use.
type Joint struct {
	space   *energies.Space
	m       *Model
	colours [][]int32 // visible, hidden
	divided *energies.Divided
}

var _ energies.Oracle = (*Joint)(nil)

// Joint returns m with its hidden units kept. It shares the weights of m.
func (m *Model) Joint() *Joint {
	j := &Joint{space: &energies.Space{Sites: m.space.Sites + m.weight.Rows, Values: 2, Kind: energies.Binary}, m: m, colours: make([][]int32, 2)}
	for i := range j.space.Sites {
		layer := VisibleLayer
		if i >= m.space.Sites {
			layer = HiddenLayer
		}
		j.colours[layer] = append(j.colours[layer], int32(i))
	}
	j.divided = energies.NewDivided(j.answer)
	return j
}

// Space implements energies.Energy.
func (j *Joint) Space() *energies.Space { return j.space }

// Machine returns the machine whose hidden units j keeps.
func (j *Joint) Machine() *Model { return j.m }

// Hidden returns the number of hidden units, which are the last sites.
func (j *Joint) Hidden() int { return j.m.weight.Rows }

// Density returns U of a state, given the inputs of its hidden units, as LogDensity does.
func (j *Joint) Density(x []int32, hidden []float32) float64 { return density(j.m, x, hidden) }

func density[T float](m *Model, x []int32, hidden []T) float64 {
	d := m.space.Sites
	u := m.linear(x[:d])
	for k, z := range x[d:] {
		u += float64(hidden[k]) * float64(z)
	}
	return u
}

// Capabilities implements energies.Oracle.
func (j *Joint) Capabilities() energies.Capabilities {
	return energies.Capabilities{Answers: energies.Density | energies.Gradient | energies.Conditional | energies.Block, Colours: j.colours}
}

// LogDensity implements energies.Energy.
func (j *Joint) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return j.Answer(ctx, energies.Query{Want: energies.Density, X: x, U: u})
}

// LogDensityGrad implements energies.Differentiable.
func (j *Joint) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	return j.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: u, Grad: g})
}

// Answer implements energies.Oracle.
func (j *Joint) Answer(ctx context.Context, q energies.Query) error {
	if !j.Capabilities().Answers.Has(q.Want) {
		return &energies.UnsupportedError{Want: q.Want}
	}
	return j.divided.Answer(ctx, q, fewRows, q.X.Chains()*len(j.m.weight.Data), 0)
}

// answer answers for the chains in [lo, hi).
func (j *Joint) answer(ctx context.Context, q *energies.Query, _ []float64, lo, hi int) error {
	switch {
	case q.Want == energies.Conditional:
		j.conditional(q, lo, hi)
		return nil
	case j.m.fast != nil:
		return layers(ctx, j, j.m.fast, q, lo, hi)
	}
	return layers(ctx, j, exact{j.m}, q, lo, hi)
}

// conditional answers for one site of the chains in [lo, hi).
func (j *Joint) conditional(q *energies.Query, lo, hi int) {
	d, h := j.m.space.Sites, j.m.weight.Rows
	for c := lo; c < hi; c++ {
		x, t := q.X.Chain(c), 0.0
		if q.Site < d {
			t = j.m.bias[q.Site]
			for k := range h {
				t += j.m.weight.Data[k*d+q.Site] * float64(x[d+k])
			}
		} else {
			t = j.m.hidden[q.Site-d]
			for i, w := range j.m.weight.Data[(q.Site-d)*d : (q.Site-d+1)*d] {
				t += w * float64(x[i])
			}
		}
		q.LogP[2*c], q.LogP[2*c+1] = 0, t
	}
}

// layerOf returns the layer that sites belong to.
func (j *Joint) layerOf(sites []int32) int {
	if int(sites[0]) >= j.m.space.Sites {
		return HiddenLayer
	}
	return VisibleLayer
}

// codes writes those of the layer other than layer, [chain, unit].
func codes[T float](to []T, j *Joint, layer int, x energies.Batch) {
	from, end := j.m.space.Sites, j.space.Sites
	if layer == HiddenLayer {
		from, end = 0, from
	}
	for c := range x.Chains() {
		row := to[c*(end-from) : (c+1)*(end-from)]
		for k, v := range x.Chain(c)[from:end] {
			row[k] = T(v)
		}
	}
}

// layers answers Block, Density and Gradient for the chains in [lo, hi), with layers of type T.
func layers[T float](ctx context.Context, j *Joint, of layersOf[T], q *energies.Query, lo, hi int) error {
	n, d, h := hi-lo, j.m.space.Sites, j.m.weight.Rows
	buffer := take[T](n * (1 + 2*(d+h)))
	defer give(buffer)
	scale, rest := (*buffer)[:n], (*buffer)[n:]
	// part cuts a buffer for each layer off rest.
	part := func() [2][]T {
		both := [2][]T{rest[:n*d], rest[n*d : n*(d+h)]}
		rest = rest[n*(d+h):]
		return both
	}
	units, input := part(), part()
	// ask computes the inputs of a layer. Without probabilities, scale only says how many rows there are.
	ask := func(layer int) error {
		given := units[1-layer]
		codes(given, j, layer, q.X.Slice(lo, hi))
		return of.Layer(ctx, layer, input[layer], nil, scale, given)
	}
	if q.Want == energies.Block {
		layer := j.layerOf(q.Sites)
		if err := ask(layer); err != nil {
			return err
		}
		lp := q.LogP[2*lo*len(q.Sites):]
		for k, t := range input[layer] {
			lp[2*k], lp[2*k+1] = 0, float64(t)
		}
		return nil
	}
	if err := ask(HiddenLayer); err != nil {
		return err
	}
	for c := range n {
		q.U[lo+c] = density(j.m, q.X.Chain(lo+c), input[HiddenLayer][c*h:(c+1)*h])
	}
	if q.Want == energies.Density {
		return nil
	}
	if err := ask(VisibleLayer); err != nil {
		return err
	}
	for c := range n {
		g := q.Grad[2*(lo+c)*(d+h):]
		for i, t := range input[VisibleLayer][c*d : (c+1)*d] {
			g[2*i], g[2*i+1] = 0, float32(t)
		}
		for k, t := range input[HiddenLayer][c*h : (c+1)*h] {
			g[2*(d+k)], g[2*(d+k)+1] = 0, float32(t)
		}
	}
	return nil
}
