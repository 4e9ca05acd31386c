package energies

import "context"

// Tempered is a Tilted energy that can be read at any inverse temperature β without
// being evaluated again: U and gradient of π^β are β·U and β·g, and the softmax of
// ½β·g is computed where that of ½g is. Annealed runs keep g and ask for its tilt.
type Tempered interface {
	Tilted
	// Tilt writes softmax_v(½β·g[i,v]) over the allowed values of each site to p. p and g
	// are [chain, site, value]; g is what LogDensityGrad wrote, or a mean of such. p
	// obeys the rules of LogDensityTilt. It is safe for concurrent use.
	Tilt(ctx context.Context, p, g []float32, beta float64) error
}

// Stochastic is an energy that is a sum over data, U(x) = Σ_j ψ_j(x), of which an
// unbiased estimate costs less than the whole or is wanted for its noise. Stochastic
// gradient samplers (Sun et al. 2023, SGDLD) run on it.
type Stochastic interface {
	Differentiable
	// Terms returns the number of terms j, at least 1.
	Terms() int
	// EstimateGrad writes (T/b)·Σ_{j in batch[c]} ψ_j(x_c), T the number of terms and b
	// the size of batch[c], to u ([chain]), and its gradient to g ([chain, site, value]).
	// batch holds the indices of terms for each chain; those of one chain may repeat.
	// Same rules as LogDensityGrad.
	EstimateGrad(ctx context.Context, u []float64, g []float32, x Batch, batch [][]int32) error
}

// Embedded is an energy whose model reads each value as a row of an embedding table,
// so that optimisers in the embedding space (PEZ, Wen et al. 2023) can run on it.
type Embedded interface {
	Energy
	// Width returns the length of an embedding row.
	Width() int
	// Embed writes the rows of codes, [chain, site], to e ([chain, site, width]).
	Embed(e []float32, x Batch)
	// EmbeddingGrad writes U to u ([chain]) and the gradient of U with respect to the
	// embeddings of x to g ([chain, site, width]). Same rules as LogDensity.
	EmbeddingGrad(ctx context.Context, u []float64, g []float32, x Batch) error
	// Nearest writes to codes ([chain, site]) the allowed value of each site whose row has
	// the largest cosine with e ([chain, site, width]); the lowest code among equals.
	Nearest(ctx context.Context, codes []int32, e []float32) error
}
