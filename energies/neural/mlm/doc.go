// Package mlm makes energies of masked language models.
//
// A model gives three energies over the fillings θ of m blanks in a text X (Form): the
// pseudo-log-likelihood
//
//	pll:     U(θ) = Σ_i log f(θ_i | X, blank i masked, the others filled)
//
// with f the softmax of the model's logits (m passes a state), the same with raw
// logits (pll-raw), and the Markov random field form of Wang and Cho 2019,
//
//	mrf:     U(θ) = Σ_i logit_i(θ_i | X, every blank filled)
//
// (one pass). None of them is normalised, and U is divided by a temperature.
// All chains and blanks of an evaluation are one batch.
//
// The gradient is taken at the one-hot encoding of θ: where the model reads its
// embedding table W by Gather(W, ids), ∂U/∂onehot = (∂U/∂output)·Wᵀ, plus the
// direct term, the model's own score of each word at its blank. The graph that
// computes it is the user's file, rewritten by onnx/grad.
package mlm
