// Package mlm provides energies of masked language models.
//
// A model defines three energies (Form) over the fillings θ of m blanks in a text X. The
// pseudo-log-likelihood is
//
//	pll:     U(θ) = Σ_i log f(θ_i | X, blank i masked, the others filled)
//
// where f is the softmax of the model's logits; it takes m sequences per state. pll-raw uses the logits
// instead of log f. The Markov random field form of Wang and Cho (2019) is
//
//	mrf:     U(θ) = Σ_i logit_i(θ_i | X, every blank filled)
//
// and takes one sequence per state. None is normalised. U is divided by a temperature. All chains and
// blanks of an evaluation form one batch.
//
// The gradient is taken at the one-hot encoding of θ. If the model reads its embedding table W by
// Gather(W, ids), then ∂U/∂onehot = (∂U/∂output)·Wᵀ plus the direct term, the model's score of each
// word at its blank. The graph that computes it is the user's file, rewritten by onnx/grad.
package mlm
