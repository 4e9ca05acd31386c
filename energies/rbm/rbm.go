// Package rbm implements the restricted Boltzmann machine with hidden units summed out,
//
//	U(x) = bᵀx + Σ_k log(1 + exp(c_k + W_kᵀx)),   x binary.
package rbm

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/gradhop/gradhop/energies"
)

// Model is an RBM. It is immutable and safe for concurrent use.
type Model struct {
	space  *energies.Space
	weight blas64.General // [hidden, site]
	bias   []float64      // b, [site]
	hidden []float64      // c, [hidden]
}

var _ energies.Differentiable = (*Model)(nil)

// New returns the machine with weights W, [hidden, site], and biases b, [site], and c, [hidden]. The
// slices are retained. The error is an *energies.SpaceError.
func New(weight, bias, hidden []float64) (*Model, error) {
	d, h := len(bias), len(hidden)
	if d == 0 || h == 0 || len(weight) != d*h {
		return nil, &energies.SpaceError{Site: -1, Reason: fmt.Sprintf("RBM with %d weights for %d sites and %d hidden units", len(weight), d, h)}
	}
	return &Model{
		&energies.Space{Sites: d, Values: 2, Kind: energies.Binary},
		blas64.General{Rows: h, Cols: d, Stride: d, Data: weight}, bias, hidden,
	}, nil
}

// Space implements energies.Energy.
func (m *Model) Space() *energies.Space { return m.space }

// Weights returns W, b and c, which must not be modified.
func (m *Model) Weights() (weight, bias, hidden []float64) { return m.weight.Data, m.bias, m.hidden }

// LogDensity implements energies.Energy.
func (m *Model) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return m.evaluate(ctx, u, nil, x)
}

// LogDensityGrad implements energies.Differentiable: ∂U/∂onehot[i,1] = b_i + Σ_k W_ki·sigmoid(c_k +
// W_kᵀx), and 0 for value 0.
func (m *Model) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	return m.evaluate(ctx, u, g, x)
}

func (m *Model) evaluate(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	n, d, h := x.Chains(), m.space.Sites, m.weight.Rows
	energies.Parallel(n, n*d*h, func(_, lo, hi int) {
		rows := hi - lo
		state := blas64.General{Rows: rows, Cols: d, Stride: d, Data: make([]float64, rows*d)}
		for k, v := range x.Codes[lo*d : hi*d] {
			state.Data[k] = float64(v)
		}
		input := blas64.General{Rows: rows, Cols: h, Stride: h, Data: make([]float64, rows*h)}
		for c := range rows {
			copy(input.Data[c*h:], m.hidden)
		}
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, state, m.weight, 1, input)
		for c := range rows {
			sum := 0.0
			for i, v := range state.Data[c*d : (c+1)*d] {
				sum += m.bias[i] * v
			}
			for k, t := range input.Data[c*h : (c+1)*h] {
				e := math.Exp(-math.Abs(t))
				sum += max(t, 0) + math.Log1p(e)
				if input.Data[c*h+k] = 1 / (1 + e); t < 0 {
					input.Data[c*h+k] = e / (1 + e)
				}
			}
			u[lo+c] = sum
		}
		if g == nil {
			return
		}
		for c := range rows {
			copy(state.Data[c*d:], m.bias)
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, input, m.weight, 1, state)
		for k, t := range state.Data {
			g[2*(lo*d+k)], g[2*(lo*d+k)+1] = 0, float32(t)
		}
	})
	return ctx.Err()
}
