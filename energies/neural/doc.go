// Package neural holds energies that run an ONNX model.
//
// [Model] is the general one: any file that computes one number a chain. Its sub-packages
// know what a model is for: mlm is masked language models over the fillings of a text,
// clip is prompts under CLIP models.
package neural
