// Package neural provides energies that run an ONNX model.
//
// [Model] handles any model that computes one number per chain. The sub-packages handle specific
// models: mlm provides energies of masked language models over the blanks of a text, clip provides
// energies of prompts under CLIP models.
package neural
