// Package models holds the small models that are built into the program, and opens
// models by name, from a folder, or from the Hugging Face Hub (package hub).
//
// A model is a folder in the layout of Hugging Face exports. A masked language model has
// model.onnx (or onnx/model.onnx), config.json, and the files of its tokenizer
// ([Open]); a CLIP has text_model.onnx and vision_model.onnx, or both in model.onnx,
// tokenizer.json and preprocessor_config.json ([OpenTowers]), and may have words.txt, the
// words that prompts are made of by default; an energy-based model over discrete states has
// model.onnx and ebm.json ([OpenEBM]). The built-in ones are embedded in the binary;
// manifest.json lists their files with size and sha256, where they come from and their
// licence, and is compared with the embedded files whenever one is opened. After changing
// a file in data, run
//
//	go generate ./models
package models

//go:generate go test -run TestManifest -update .
