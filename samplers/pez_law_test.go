package samplers_test

import (
	"math"
	"strconv"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/samplertest"
)

// pezLaw puts all probability on the one state that PEZ goes to: AdamW written with
// the sums that its moving averages unroll to, over the gradients of the whole path.
var pezLaw = samplertest.Law{
	Spread:   true,
	Variants: []samplers.Settings{{}, {"lr": "0.7", "weight-decay": "0"}, {"lr": "0.4", "weight-decay": "0.5"}},
	Row: func(p *samplertest.Problem, set samplers.Settings, step int64, k int) []float64 {
		return pezPath(func(int64) *samplertest.Problem { return p }, set, step, 1, k)
	},
	After: pezPath,
}

func pezPath(at func(int64) *samplertest.Problem, set samplers.Settings, first int64, n, k int) []float64 {
	lr, decay := 0.1, 0.1
	if set["lr"] != "" {
		lr, _ = strconv.ParseFloat(set["lr"], 64)
		decay, _ = strconv.ParseFloat(set["weight-decay"], 64)
	}
	p := at(first)
	d := p.Space().Sites
	var embeddings [][samplertest.Width]float64
	for _, v := range p.Law.X.Chain(k) {
		embeddings = append(embeddings, p.EmbeddingRow(v))
	}
	var gradients [][][samplertest.Width]float64 // [step, site]
	for t := range n {
		p := at(first + int64(t))
		var now [][samplertest.Width]float64
		for i := range d {
			now = append(now, p.EmbeddingGradient(k, i))
		}
		gradients = append(gradients, now)
		x := append([]int32(nil), p.Law.X.Chain(k)...)
		for i := range d {
			for w := range samplertest.Width {
				m, v, share, square := 0.0, 0.0, 0.0, 0.0
				for j, past := range gradients {
					a, b := math.Pow(0.9, float64(t-j)), math.Pow(0.999, float64(t-j))
					m, share = m-a*past[i][w], share+a
					v, square = v+b*past[i][w]*past[i][w], square+b
				}
				embeddings[i][w] += -lr*decay*embeddings[i][w] - lr*(m/share)/(math.Sqrt(v/square)+1e-8)
			}
			x[i] = nearest(p, i, embeddings[i])
		}
		if to := p.Law.Find(x); p.Law.P[to] > 0 {
			k = to
		}
	}
	row := make([]float64, p.Law.Len())
	row[k] = 1
	return row
}

// nearest is the allowed value with the least angle to an embedding.
func nearest(p *samplertest.Problem, i int, e [samplertest.Width]float64) int32 {
	best, least := int32(-1), math.Inf(1)
	for _, v := range p.Values(i) {
		row, dot, a, b := p.EmbeddingRow(v), 0.0, 0.0, 0.0
		for w := range row {
			dot += row[w] * e[w]
			a += row[w] * row[w]
			b += e[w] * e[w]
		}
		if angle := math.Acos(dot / math.Sqrt(a) / math.Sqrt(b)); angle < least {
			best, least = v, angle
		}
	}
	return best
}
