package samplertest

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// Width is the length of the embedding rows that problems have where a kernel needs them.
const Width = 3

// EmbeddingRow is the row of value v, the same at every site.
func (p *Problem) EmbeddingRow(v int32) [Width]float64 {
	var row [Width]float64
	for w := range row {
		row[w] = float64(float32(math.Sin(float64(1 + 5*w + 3*int(v) + w*int(v)))))
	}
	return row
}

// EmbeddingGradient is what the problem takes for the gradient of U with respect to the
// embedding of site i at state k: the rows in proportion to ∂U/∂onehot.
func (p *Problem) EmbeddingGradient(k, i int) [Width]float64 {
	var g [Width]float64
	s := p.Space().Values
	for v := range int32(s) {
		row := p.EmbeddingRow(v)
		for w := range g {
			g[w] += p.Gradient[(k*p.Space().Sites+i)*s+int(v)] * row[w]
		}
	}
	return g
}

// embedded gives a problem's values rows.
type embedded struct{ oracle }

var _ samplers.Embedded = embedded{}

func (e embedded) Width() int { return Width }

func (e embedded) Embed(rows []float32, x energies.Batch) {
	for r, v := range x.Codes {
		for w, t := range e.p.EmbeddingRow(v) {
			rows[r*Width+w] = float32(t)
		}
	}
}

func (e embedded) EmbeddingGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	s := x.Space.Values
	hot := make([]float32, len(x.Codes)*s)
	if err := e.LogDensityGrad(ctx, u, hot, x); err != nil {
		return err
	}
	for r := range x.Codes {
		var sum [Width]float64
		for v := range s {
			for w, t := range e.p.EmbeddingRow(int32(v)) {
				sum[w] += float64(hot[r*s+v]) * t
			}
		}
		for w, t := range sum {
			g[r*Width+w] = float32(t)
		}
	}
	return nil
}

func (e embedded) Nearest(ctx context.Context, codes []int32, rows []float32) error {
	for r := range codes {
		best := math.Inf(-1)
		for _, v := range e.p.Values(r % e.p.Space().Sites) {
			dot, a, b := 0.0, 0.0, 0.0
			for w, t := range e.p.EmbeddingRow(v) {
				at := float64(rows[r*Width+w])
				dot, a, b = dot+t*at, a+t*t, b+at*at
			}
			if cos := dot / math.Sqrt(a*b); cos > best {
				best, codes[r] = cos, v
			}
		}
	}
	return ctx.Err()
}
