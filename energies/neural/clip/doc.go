// Package clip runs CLIP models (Radford et al. 2021) and makes energies of prompts.
//
// A [Model] encodes texts and images as unit vectors of one space. A [Prompt] is the
// energy of the fillings x of a text with blanks, U(x) = Σ_j ω_j cos(t(x), v_j), with
// target vectors v_j and weights ω_j. Its gradient is taken at the one-hot encoding of the
// tokens, through the model's token embeddings.
package clip
