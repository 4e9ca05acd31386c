package gradient

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
)

// referred is the size in bytes from which --weights refer leaves a tensor where it
// is in the model's file.
const referred = 1024

// save writes the model, with what it was made of and by in its metadata.
func save(o *Options, f *modelfile.File, r *grad.Result) error {
	m := r.Model
	m.Metadata = maps.Clone(m.Metadata)
	if m.Metadata == nil {
		m.Metadata = map[string]string{}
	}
	m.Metadata["gradhop.version"] = app.Version()
	m.Metadata["gradhop.model.sha256"] = f.SHA256
	m.Metadata["gradhop.of"], m.Metadata["gradhop.wrt"] = r.Of, strings.Join(o.Wrt, ",")
	if o.Reduce != "" {
		m.Metadata["gradhop.reduce"] = o.Reduce
	}
	s := onnx.SaveOptions{Embed: o.Weights == "embed"}
	switch o.Weights {
	case "copy":
		s.ExternalData = filepath.Base(o.Out) + ".data"
		if data := filepath.Join(filepath.Dir(o.Out), s.ExternalData); modelfile.Same(data, o.Path) || slices.ContainsFunc(f.External(), func(e modelfile.External) bool {
			return modelfile.Same(data, filepath.Join(f.Dir, filepath.FromSlash(e.Location)))
		}) {
			return app.Usagef("--weights copy would write to %s, which the model itself is in", data)
		}
	case "refer":
		m = refer(m, f)
	}
	if o.Weights == "keep" || o.Weights == "refer" {
		if err := reachable(o, m); err != nil {
			return err
		}
	}
	err := onnx.Save(m, o.Out, s)
	var path *fs.PathError
	if errors.As(err, &path) {
		return &app.OutputError{Path: o.Out, Err: err}
	}
	return app.Classify(err)
}

// refer returns m with the large tensors that came from the user's file as references
// to that file.
func refer(m *onnx.Model, f *modelfile.File) *onnx.Model {
	out := *m
	g := *m.Graph
	g.Initializers = slices.Clone(g.Initializers)
	for i, t := range g.Initializers {
		if t.External != nil || t.Offset < 0 || len(t.Raw) < referred {
			continue
		}
		c := *t
		c.External = &onnx.External{Location: filepath.Base(f.Path), Offset: t.Offset, Length: int64(len(t.Raw))}
		c.Raw, c.Offset = nil, -1
		g.Initializers[i] = &c
	}
	out.Graph = &g
	return &out
}

// reachable checks that the files that m refers to lie beside the new model, or in
// folders below it: no reader follows other references.
func reachable(o *Options, m *onnx.Model) error {
	to, err := filepath.Abs(filepath.Dir(o.Out))
	if err != nil {
		return err
	}
	from, err := filepath.Abs(m.Dir)
	if err != nil {
		return err
	}
	for _, t := range m.Graph.Initializers {
		if t.External == nil {
			continue
		}
		data := filepath.Join(from, filepath.FromSlash(t.External.Location))
		if rel, err := filepath.Rel(to, data); err != nil || !filepath.IsLocal(rel) {
			return app.Usagef("the weights are in %s, to which a model in %s cannot refer: write it beside them, or use --weights copy or embed", data, filepath.Dir(o.Out))
		}
	}
	return nil
}
