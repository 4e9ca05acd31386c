package rbm

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

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
}

var _ energies.Oracle = (*Joint)(nil)

// Joint returns m with its hidden units kept. It shares the weights of m.
func (m *Model) Joint() *Joint {
	j := &Joint{space: &energies.Space{Sites: m.space.Sites + m.weight.Rows, Values: 2, Kind: energies.Binary}, m: m, colours: make([][]int32, 2)}
	for i := range j.space.Sites {
		layer := 0
		if i >= m.space.Sites {
			layer = 1
		}
		j.colours[layer] = append(j.colours[layer], int32(i))
	}
	return j
}

// Space implements energies.Energy.
func (j *Joint) Space() *energies.Space { return j.space }

// Machine returns the machine whose hidden units j keeps.
func (j *Joint) Machine() *Model { return j.m }

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
	n, d, h := q.X.Chains(), j.m.space.Sites, j.m.weight.Rows
	energies.Parallel(n, n*d*h, func(_, lo, hi int) {
		switch q.Want {
		case energies.Conditional:
			j.conditional(q, lo, hi)
		case energies.Block:
			layer := 0
			if int(q.Sites[0]) >= d {
				layer = 1
			}
			logits := j.fields(q.X, lo, hi, layer).Data
			for k, t := range logits {
				at := lo*len(q.Sites) + k
				q.LogP[2*at], q.LogP[2*at+1] = 0, t
			}
		default:
			j.density(q, lo, hi)
		}
	})
	return ctx.Err()
}

// fields returns what U gains when a unit of a layer (0 visible, 1 hidden) is switched on, given
// the other layer, for the chains in [lo, hi): [chain, unit].
func (j *Joint) fields(x energies.Batch, lo, hi, layer int) blas64.General {
	d, h := j.m.space.Sites, j.m.weight.Rows
	own, other, from, bias, transpose := h, d, 0, j.m.hidden, blas.Trans
	if layer == 0 {
		own, other, from, bias, transpose = d, h, d, j.m.bias, blas.NoTrans
	}
	given, out := dense(hi-lo, other), dense(hi-lo, own)
	for c := range hi - lo {
		copy(out.Data[c*own:], bias)
		for k, v := range x.Chain(lo + c)[from : from+other] {
			given.Data[c*other+k] = float64(v)
		}
	}
	blas64.Gemm(blas.NoTrans, transpose, 1, given, j.m.weight, 1, out)
	return out
}

func dense(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

// conditional answers for one site of the chains in [lo, hi).
func (j *Joint) conditional(q energies.Query, lo, hi int) {
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

// density answers Density and Gradient for the chains in [lo, hi).
func (j *Joint) density(q energies.Query, lo, hi int) {
	d, h := j.m.space.Sites, j.m.weight.Rows
	hidden := j.fields(q.X, lo, hi, 1).Data
	for c := lo; c < hi; c++ {
		u, x := 0.0, q.X.Chain(c)
		for i, v := range x[:d] {
			u += j.m.bias[i] * float64(v)
		}
		for k, z := range x[d:] {
			u += hidden[(c-lo)*h+k] * float64(z)
		}
		q.U[c] = u
	}
	if q.Want == energies.Density {
		return
	}
	visible := j.fields(q.X, lo, hi, 0).Data
	for c := range hi - lo {
		g := q.Grad[2*(lo+c)*(d+h) : 2*(lo+c+1)*(d+h)]
		for i, t := range visible[c*d : (c+1)*d] {
			g[2*i], g[2*i+1] = 0, float32(t)
		}
		for k, t := range hidden[c*h : (c+1)*h] {
			g[2*(d+k)], g[2*(d+k)+1] = 0, float32(t)
		}
	}
}
