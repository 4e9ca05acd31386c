package infill

import (
	"errors"
	"fmt"
	"maps"

	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// Files that the folder of a run has besides those of package store.
const (
	DocumentFile = "infill.json" // the Document
	TokensFile   = "tokens.json" // Tokens
)

// Tokens say what the codes of the draws stand for.
type Tokens struct {
	Pieces []string `json:"pieces"` // [code]
}

// folder keeps the draws of a text; without a name it does nothing.
type folder struct {
	dir string
	w   *store.Writer
}

// create makes the folder of a run.
func (f *folder) create(d *Document, p *Problem, c samplers.Config) error {
	s := d.Settings.Sampling
	h := store.HeaderOf(c)
	h.Gradhop, h.Versions = d.Gradhop, map[string]string{"onnxruntime": ort.Version()}
	h.Model, h.ModelSHA256, h.Sampler = d.Model.Name, d.Model.SHA256, s.Sampler
	h.Settings = map[string]string{
		"text": d.Input, "energy": string(d.Settings.Energy), "mask-embedding": string(d.Settings.MaskEmbedding),
		"temperature": fmt.Sprint(d.Settings.Temperature), "gradient": string(s.Gradient), "init": string(s.Init),
		"provider": d.Settings.Provider, "no-repeat": fmt.Sprint(d.Settings.NoRepeat),
	}
	maps.Copy(h.Settings, s.Options)
	h.Files = []string{DocumentFile, TokensFile}
	var err error
	if f.w, err = store.Create(f.dir, h, store.Options{}); err != nil {
		return err
	}
	pieces := make([]string, p.Energy.Space().Values)
	for id := range pieces {
		pieces[id] = p.m.tok.Piece(int32(id))
	}
	if err := store.WriteSealed(f.dir, TokensFile, Tokens{pieces}); err != nil {
		return errors.Join(err, f.w.Close())
	}
	return nil
}

// Observe implements samplers.Observer.
func (f *folder) Observe(s *samplers.State, info *samplers.Info) error { return f.w.Observe(s, info) }

// close ends the run and writes its summary.
func (f *folder) close(d *Document) error {
	if f.w == nil {
		return nil
	}
	if err := f.w.Close(); err != nil {
		return err
	}
	if err := store.WriteSealed(f.dir, DocumentFile, d); err != nil {
		return err
	}
	r, err := store.Open(f.dir)
	if err != nil || r.Draws(store.Sampling) == 0 {
		return err
	}
	summary, err := store.Summarize(r, store.TableOptions{})
	if err != nil {
		return err
	}
	return summary.Write(f.dir)
}
