package models

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"sync"

	"github.com/gradhop/gradhop/models/hub"
)

// Model is a masked language model whose files are available.
type Model struct {
	// Name is the built-in name, the last element of the folder's path, or owner/name@commit.
	Name string
	// FS holds the model's files.
	FS fs.FS
	// ONNX is the model file in FS, for instance "onnx/model.onnx".
	ONNX string
	// Dir is the folder on disk, or "" for a built-in model.
	Dir string
	// SHA256 is the SHA-256 of the ONNX file in hex. It does not cover weights in other files.
	SHA256 string
}

// needed lists the other files that every masked language model has.
var needed = []string{"config.json"}

// Open returns a masked language model. ref is a built-in name, a folder, or owner/name@revision on the
// Hugging Face Hub, tried in this order; "" means Default. A model on the Hub is downloaded into the
// cache. Use "./name" for a folder with the name of a built-in model. The model file is model.onnx or
// onnx/model.onnx; with "#variant" at the end of ref, for instance "#int8", it is model_int8.onnx; with
// "#x.onnx" it is x.onnx. Use [OpenTowers] for CLIP models and [OpenEBM] for energy-based models.
//
// Errors are *Error for an unknown name, a model of another kind, or a file that is missing or differs
// from the manifest; *hub.Error; and those of reading files and of the context.
func Open(ctx context.Context, ref string, o hub.Options) (Model, error) {
	src, err := find(ctx, cmp.Or(ref, Default), o)
	if err != nil {
		return Model{}, err
	}
	if src.entry != nil && src.entry.kind() != kindMLM {
		return Model{}, wrongKind(src.ref, src.entry.kind(), kindMLM, MLMs())
	}
	m := Model{Name: src.name, FS: src.fs, Dir: src.dir, ONNX: src.first(src.variants(single))}
	if m.ONNX == "" && src.first(src.variants(textTowers)) != "" {
		return Model{}, wrongKind(src.ref, kindCLIP, kindMLM, MLMs())
	}
	if m.ONNX == "" {
		return Model{}, src.missing(ctx, single[0])
	}
	if err := src.fetch(ctx, m.ONNX); err != nil {
		return Model{}, err
	}
	for _, name := range needed {
		if !src.has(name) {
			return Model{}, missingFile(src.ref, name, "")
		}
	}
	m.SHA256, err = src.sum(ctx, m.ONNX)
	return m, err
}

// verified records which built-in models were compared with the manifest.
var verified sync.Map // name -> error or nil

// files returns the files of a built-in model, compared with the manifest once.
func (e Entry) files() (fs.FS, error) {
	sub, err := fs.Sub(data, "data/"+e.Name)
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", e.Name, err)
	}
	check, _ := verified.LoadOrStore(e.Name, sync.OnceValue(func() error { return e.verify(sub) }))
	return sub, check.(func() error)()
}
