package models

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"sync"

	"github.com/gradhop/gradhop/models/hub"
)

// Model is a masked language model that is there to be read.
type Model struct {
	// Name is the built-in name, the last element of the folder's path, or owner/name@commit.
	Name string
	// FS holds the model's files.
	FS fs.FS
	// ONNX is the model file in FS, for instance "onnx/model.onnx".
	ONNX string
	// Dir is the folder on disk, or "" for a built-in model.
	Dir string
	// SHA256 is that of the ONNX file, in hex. Weights that the file keeps in other
	// files take no part in it.
	SHA256 string
}

// needed are the other files that every masked language model has.
var needed = []string{"config.json"}

// Open returns a masked language model: a built-in one, the one in a folder, or one on the
// Hugging Face Hub, which is downloaded into the cache. ref is a built-in name, a folder, or
// owner/name@revision, in this order; "" means Default. A folder with the name of a built-in
// model is reached as "./name". The model file is model.onnx or onnx/model.onnx; with
// "#variant" at the end of ref, for instance "#int8", it is model_int8.onnx; with "#x.onnx"
// it is the file x.onnx. [OpenTowers] opens a CLIP, [OpenEBM] an energy-based model.
//
// Errors: *Error for a name that is no model, a model of another kind, a file that is
// missing or is not the one in the manifest, *hub.Error, those of reading the files, that of
// the context.
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

// verified remembers which built-in models were compared with the manifest.
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
