// Package selection implements Bayesian logistic regression with binary coefficients, which select
// variables (Sun et al. 2023, section 6.2):
//
//	U(β) = Σ_j y_j·x_jᵀβ - log(1 + exp(x_jᵀβ)),   β binary.
package selection

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gradhop/gradhop/energies"
)

// Model is the posterior under a uniform prior. It is immutable and safe for concurrent use. It answers
// Estimate with minibatches of the data.
type Model struct {
	space *energies.Space
	x     []float64 // [datum, variable]
	y     []bool

	divided *energies.Divided
}

var _ energies.Oracle = (*Model)(nil)

// New returns the model of data x, [datum, variable], and y, [datum]. The slices are retained. The
// error is an *energies.SpaceError.
func New(x []float64, y []bool) (*Model, error) {
	if len(y) == 0 || len(x)%len(y) != 0 || len(x) == 0 {
		return nil, &energies.SpaceError{Site: -1, Reason: fmt.Sprintf("variable selection with %d numbers for %d data", len(x), len(y))}
	}
	m := &Model{space: &energies.Space{Sites: len(x) / len(y), Values: 2, Kind: energies.Binary}, x: x, y: y}
	m.divided = energies.NewDivided(m.answer)
	return m, nil
}

// Simulate draws the data of Sun et al. (2023), appendix C.2: rows N(0, (I + 11ᵀ)/d) of d = variables/2
// numbers, each repeated twice, and y for the selection of the first √d variables.
func Simulate(variables, data int, seed uint64) (*Model, error) {
	if variables < 2 || variables%2 != 0 || data < 1 {
		return nil, &energies.SpaceError{Site: -1, Reason: fmt.Sprintf("variable selection with %d variables and %d data; want an even number of variables and data", variables, data)}
	}
	d := variables / 2
	x, y := make([]float64, data*variables), make([]bool, data)
	r := rand.New(rand.NewPCG(seed, 0))
	for j := range data {
		common, t := r.NormFloat64(), 0.0
		for i := range d {
			v := (r.NormFloat64() + common) / math.Sqrt(float64(d))
			x[j*variables+i], x[j*variables+d+i] = v, v
			if float64(i) < math.Sqrt(float64(d)) {
				t += v
			}
		}
		y[j] = r.Float64() < 1/(1+math.Exp(-t))
	}
	return New(x, y)
}

// Space implements energies.Energy.
func (m *Model) Space() *energies.Space { return m.space }

// Data returns x, [datum, variable], and y, [datum], which must not be modified.
func (m *Model) Data() (x []float64, y []bool) { return m.x, m.y }

// Capabilities implements energies.Oracle.
func (m *Model) Capabilities() energies.Capabilities {
	return energies.Capabilities{Answers: energies.Density | energies.Gradient | energies.Estimate, Terms: len(m.y)}
}

// LogDensity implements energies.Energy.
func (m *Model) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return m.Answer(ctx, energies.Query{Want: energies.Density, X: x, U: u})
}

// Answer implements energies.Oracle.
func (m *Model) Answer(ctx context.Context, q energies.Query) error {
	if !m.Capabilities().Answers.Has(q.Want) {
		return &energies.UnsupportedError{Want: q.Want}
	}
	return m.divided.Answer(ctx, q, 1, len(q.X.Codes)*len(m.y), m.space.Sites)
}

// answer answers the query for chains lo to hi-1.
func (m *Model) answer(_ context.Context, q *energies.Query, slope []float64, lo, hi int) error {
	d := len(slope)
	for c := lo; c < hi; c++ {
		clear(slope)
		u, share, row := 0.0, 1.0, q.X.Chain(c)
		if q.Want == energies.Estimate {
			share = float64(len(m.y)) / float64(len(q.Terms[c]))
			for _, j := range q.Terms[c] {
				u += m.term(slope, row, int(j))
			}
		} else {
			for j := range m.y {
				u += m.term(slope, row, j)
			}
		}
		q.U[c] = share * u
		if q.Want == energies.Density {
			continue
		}
		for i, t := range slope {
			q.Grad[2*(c*d+i)], q.Grad[2*(c*d+i)+1] = 0, float32(share*t)
		}
	}
	return nil
}

// term returns the contribution of datum j to U and adds its gradient to slope.
func (m *Model) term(slope []float64, beta []int32, j int) float64 {
	row, t := m.x[j*len(slope):(j+1)*len(slope)], 0.0
	for i, b := range beta {
		t += row[i] * float64(b)
	}
	e := math.Exp(-math.Abs(t))
	u, rest := -max(t, 0)-math.Log1p(e), -1/(1+e) // rest = y - sigmoid(t)
	if t < 0 {
		rest = -e / (1 + e)
	}
	if m.y[j] {
		u, rest = u+t, rest+1
	}
	for i, v := range row {
		slope[i] += rest * v
	}
	return u
}
