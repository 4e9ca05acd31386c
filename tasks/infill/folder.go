package infill

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/tasks/internal/draft"
	"github.com/gradhop/gradhop/tasks/internal/record"
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

// command is the name of the task in the record of a run.
const command = "infill"

// Saved is what a run of draws was begun with.
type Saved struct {
	Model         string            `json:"model"` // as for [Open]
	Provider      string            `json:"provider"`
	Energy        mlm.Form          `json:"energy"`
	MaskEmbedding mlm.MaskEmbedding `json:"mask_embedding"`
	Gradient      mlm.Gradient      `json:"gradient"`
	Temperature   float64           `json:"temperature"`
	Text          string            `json:"text"`
	Words         TextOptions       `json:"words"`
	Draws         int               `json:"draws"`
	Sampling      DrawOptions       `json:"sampling"`
}

// LoadSaved reads what the run in a folder was begun with, to resume it. The path of a model
// leads from the present folder. Errors: *store.Error, one that matches fs.ErrNotExist where
// the process was killed at once; *InputError for the run of another task.
func LoadSaved(dir string) (Saved, error) {
	var s Saved
	name, moved, err := record.Load(dir, &s)
	switch {
	case err != nil:
		return s, err
	case name != command:
		return s, badOption("resume", "%s is a run of gradhop %s, which continues it: gradhop %s --resume %s", dir, name, name, dir)
	}
	s.Model, s.Sampling.Draft = moved(s.Model), moved(s.Sampling.Draft)
	return s, nil
}

// folder keeps the draws of a text.
type folder struct {
	dir    string
	resume bool // the run that is there continues
	saved  Saved
	w      *store.Writer
	d      *Document
	p      *Problem
}

// newFolder returns nil where the options name no folder. It refuses an occupied one.
func newFolder(d *Document, p *Problem, o *Options) (*folder, error) {
	if o.Folder == "" {
		return nil, nil
	}
	if !o.Resume {
		if err := store.Vacant(o.Folder); err != nil { // before the search
			return nil, err
		}
	}
	m, s := p.m, d.Settings
	return &folder{dir: o.Folder, resume: o.Resume, d: d, p: p, saved: Saved{
		m.ref, m.options.Runtime.Provider, s.Energy, s.MaskEmbedding, s.Sampling.Gradient, s.Temperature, p.Text, o.Words, o.Draws, o.Sampling,
	}}, nil
}

// begin makes the loop of a run and its folder, or takes up the run that is there and shows
// its draws to the observers. starts returns the states that chains start from. The tally is
// that of earlier processes. Chains that cannot start leave no folder.
func (f *folder) begin(ctx context.Context, c samplers.Config, starts func() ([]int32, error)) (loop *samplers.Loop, t store.Tally, err error) {
	if f != nil && f.resume {
		return f.takeUp(ctx, c, starts)
	}
	if c.Init, err = starts(); err != nil {
		return nil, t, err
	}
	if f == nil {
		loop, err = samplers.NewLoop(ctx, c)
		return loop, t, err
	}
	c.Observers = append([]samplers.Observer{f}, c.Observers...)
	if loop, err = samplers.NewLoop(ctx, c); err != nil {
		return nil, t, err
	}
	if f.w, err = store.Create(f.dir, f.header(c), store.Options{}); err != nil {
		return nil, t, err
	}
	return loop, t, f.describe()
}

func (f *folder) takeUp(ctx context.Context, c samplers.Config, starts func() ([]int32, error)) (loop *samplers.Loop, t store.Tally, err error) {
	if f.w, c.Resume, err = store.Resume(f.dir, f.header(c), store.Options{}); err != nil {
		return nil, t, err
	}
	r, err := store.Open(f.dir)
	if err != nil {
		return nil, t, err
	}
	t = r.Tally()
	for _, o := range c.Observers {
		if err := r.Replay(f.p.Energy.Space(), o); err != nil {
			return nil, t, err
		}
	}
	if c.Resume == nil { // killed before the first checkpoint
		if c.Init, err = starts(); err != nil {
			return nil, t, err
		}
	}
	c.Observers = append([]samplers.Observer{f}, c.Observers...)
	if loop, err = samplers.NewLoop(ctx, c); err != nil {
		return nil, t, err
	}
	return loop, t, f.describe()
}

// header says what the run is.
func (f *folder) header(c samplers.Config) store.Header {
	d := f.d
	s := d.Settings.Sampling
	h := store.HeaderOf(c)
	h.Gradhop, h.Versions = d.Gradhop, draft.Versions(f.p.m.options.Runtime, d.Settings.Provider, s.Draft)
	h.Model, h.ModelSHA256, h.Sampler = d.Model.Name, d.Model.SHA256, s.Sampler
	h.Settings = map[string]string{
		"text": d.Input, "energy": string(d.Settings.Energy), "mask-embedding": string(d.Settings.MaskEmbedding),
		"temperature": fmt.Sprint(d.Settings.Temperature), "gradient": string(s.Gradient), "init": string(s.Init),
		"provider": d.Settings.Provider, "no-repeat": fmt.Sprint(d.Settings.NoRepeat),
	}
	if n := s.Jumps; n > 0 {
		h.Settings["jumps"] = strconv.Itoa(n)
	}
	if s.Draft != "" {
		h.Settings["draft"] = s.Draft
	}
	maps.Copy(h.Settings, s.Options)
	h.Files = []string{DocumentFile, TokensFile, record.Name}
	return h
}

// describe writes what the codes stand for, what the run is so far, and what it was begun
// with.
func (f *folder) describe() error {
	pieces := make([]string, f.p.Energy.Space().Values)
	for id := range pieces {
		pieces[id] = f.p.m.tok.Piece(int32(id))
	}
	if err := store.WriteSealed(f.dir, TokensFile, Tokens{pieces}); err != nil {
		return err
	}
	begun := *f.d
	begun.Interrupted = true // until it ends
	if err := store.WriteSealed(f.dir, DocumentFile, begun); err != nil {
		return err
	}
	return record.Save(f.dir, command, f.saved)
}

// Observe implements samplers.Observer.
func (f *folder) Observe(s *samplers.State, info *samplers.Info) error { return f.w.Observe(s, info) }

// close ends the run and writes its document and summary.
func (f *folder) close() error {
	if f == nil || f.w == nil {
		return nil
	}
	if err := f.w.Close(); err != nil {
		return err
	}
	if err := store.WriteSealed(f.dir, DocumentFile, f.d); err != nil {
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
