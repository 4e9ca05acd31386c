// Package ebm trains, samples and scores deep energy-based models over discrete states:
// any ONNX model that computes U, the log-density in nats up to a constant.
//
// # Training
//
// [New] moves the trainable initialisers of the model to its inputs and prepares two
// graphs: U with the gradient by the state, for the sampler, and the objective with its
// gradient by the weights. [Trainer.Step] is persistent contrastive divergence (Tieleman
// 2008) as in Grathwohl et al. (2021) and Zhang, Liu and Liu (2022): it draws data,
// continues chains of a replay buffer by a few sampler steps, and follows
//
//	∇ [ mean U(data) - mean U(samples) ]
//
// by Adam. [Run] keeps a training in a folder that can be stopped and resumed with equal
// weights, to the bit. Weights change in memory; no model file is written per update.
//
// # Scoring
//
// [AIS] estimates log Z by annealed importance sampling, from below and, given exact
// draws, from above. The log-likelihood of a state is U(x) - log Z.
//
// # Sampling
//
// A trained model is an ordinary energy for package samplers. [Clamp] fixes some sites,
// for in-painting. [Grid] draws states side by side.
//
// Package network builds the papers' networks; package dataset reads data.
package ebm
