package samplers_test

import (
	"context"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/samplers/rng"
)

// Prompts of two words out of twenty, and a set of pictures.
const (
	promptSites, promptWords = 2, 20
	pictures                 = 10
	promptWidth              = 6
)

// prompts is prompt tuning in small: U(x) = scale/n·Σ_j cos(t(x), v_j), where t is a text
// tower that is not linear, tanh of the sum of word embeddings by position, and v_j are
// picture vectors; a sum over pictures. Every state's numbers are computed once.
type prompts struct {
	law   *table.Enumeration
	terms [][]float64 // ψ_j, [state, picture]
	grads [][]float32 // ∂ψ_j/∂onehot, [state, picture · site · value]
	total []float32   // their sum over pictures, [state · site · value]
}

var _ energies.Minibatch = (*prompts)(nil)

func newPrompts(seed int64, scale, bend float64) *prompts {
	var r rng.Stream
	r.Reset(2024, seed, 0, 0)
	normal := func(n int) []float64 {
		x := make([]float64, n)
		for k := range x {
			x[k] = math.Sqrt(-2*math.Log(r.Float64())) * math.Cos(2*math.Pi*r.Float64())
		}
		return x
	}
	words := normal(promptSites * promptWords * promptWidth)
	var views [pictures][]float64
	for j := range views {
		views[j] = normal(promptWidth)
		n := norm(views[j])
		for w := range views[j] {
			views[j][w] /= n
		}
	}
	sp := &energies.Space{Sites: promptSites, Values: promptWords}
	p := &prompts{law: &table.Enumeration{X: energies.NewBatch(sp, promptWords*promptWords)}}
	const row = promptSites * promptWords
	p.total = make([]float32, promptWords*promptWords*row)
	for k := range promptWords * promptWords {
		x := p.law.X.Chain(k)
		x[0], x[1] = int32(k/promptWords), int32(k%promptWords)
		tower, slope := make([]float64, promptWidth), make([]float64, promptWidth)
		for w := range tower {
			in := 0.7
			for i, v := range x {
				in += words[(i*promptWords+int(v))*promptWidth+w]
			}
			tower[w] = math.Tanh(bend*in) / bend
			slope[w] = 1 - bend*bend*tower[w]*tower[w]
		}
		terms, grads := make([]float64, pictures), make([]float32, pictures*row)
		length := norm(tower)
		for j, view := range views {
			dot := 0.0
			for w, t := range tower {
				dot += t * view[w]
			}
			terms[j] = scale / pictures * dot / length
			for i := range promptSites {
				for v := range promptWords {
					sum := 0.0
					for w, t := range tower {
						down := view[w]/length - dot*t/(length*length*length)
						sum += scale / pictures * down * slope[w] * words[(i*promptWords+v)*promptWidth+w]
					}
					grads[j*row+i*promptWords+v] = float32(sum)
					p.total[k*row+i*promptWords+v] += float32(sum)
				}
			}
		}
		p.terms, p.grads = append(p.terms, terms), append(p.grads, grads)
	}
	law, err := table.Enumerate(context.Background(), p)
	if err != nil {
		panic(err)
	}
	p.law = law
	return p
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

func (p *prompts) Space() *energies.Space { return p.law.X.Space }

func (p *prompts) Terms() int { return pictures }

// state is the number of a chain's state.
func (p *prompts) state(x []int32) int { return int(x[0])*promptWords + int(x[1]) }

func (p *prompts) LogDensity(_ context.Context, u []float64, x energies.Batch) error {
	for c := range u {
		u[c] = 0
		for _, t := range p.terms[p.state(x.Chain(c))] {
			u[c] += t
		}
	}
	return nil
}

func (p *prompts) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	const row = promptSites * promptWords
	for c := range u {
		k := p.state(x.Chain(c))
		copy(g[c*row:(c+1)*row], p.total[k*row:(k+1)*row])
	}
	return p.LogDensity(ctx, u, x)
}

func (p *prompts) EstimateGrad(ctx context.Context, u []float64, g []float32, x energies.Batch, batch [][]int32) error {
	const row = promptSites * promptWords
	for c := range u {
		k, share := p.state(x.Chain(c)), float32(pictures)/float32(len(batch[c]))
		out := g[c*row : (c+1)*row]
		u[c] = 0
		clear(out)
		for _, j := range batch[c] {
			u[c] += float64(share) * p.terms[k][j]
			for v, t := range p.grads[k][int(j)*row : (int(j)+1)*row] {
				out[v] += share * t
			}
		}
	}
	return ctx.Err()
}
