package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
)

// InfillOptions are the settings of [Infill].
type InfillOptions struct {
	// Model is a name for models.Open. Energy selects the energy of the model.
	Model  string
	Energy mlm.Options
	Hub    hub.Options
	// Task is a task file; see [ReadTask]. References are files of sentences.
	Task       string
	References []string
	// Mix is the number of sentences of each reference file in the corpus BLEU; 0 means all.
	Mix int
	// Originals keeps the task's own sentences among the references.
	Originals bool
	// Entrants, Words, Keep and Top are as in [Infilling].
	Entrants []Entrant
	Words    infill.TextOptions
	Keep     Keep
	Top      int
	// Version is the version of the program, for the record.
	Version string
	// Begun is called before the first step, Progress after every step, and Done when an entrant is
	// finished. Each may be nil.
	Begun    func() error
	Progress func(Progress)
	Done     func(Scored) error
}

// InfillResult is the result of [Infill] with all settings needed to repeat it. With equal settings and
// seed only the seconds differ.
type InfillResult struct {
	Gradhop     string         `json:"gradhop"`     // version
	ONNXRuntime string         `json:"onnxruntime"` // version
	Seed        uint64         `json:"seed"`
	Model       infill.ModelID `json:"model"`
	Task        TaskFile       `json:"task"`
	References  []Reference    `json:"references"`
	// MixPerRef is the number of sentences of each file in the corpus BLEU; 0 means all.
	MixPerRef int             `json:"mix_per_ref"`
	Keep      Keep            `json:"keep"`
	Samplers  []InfillEntrant `json:"samplers"`
	// Interrupted means that samplers are missing because the run ended early.
	Interrupted bool `json:"interrupted,omitempty"`
}

// TaskFile identifies a task file.
type TaskFile struct {
	File      string `json:"file"`
	SHA256    string `json:"sha256"`
	Sentences int    `json:"sentences"`
}

// Reference identifies a file of references.
type Reference struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"` // number used for comparison
	Removed   int    `json:"removed"`   // number removed, because they are in the task
}

// InfillEntrant is the result of a sampler.
type InfillEntrant struct {
	Sampler string `json:"sampler"`
	// Note warns about a sampler that is not exact.
	Note     string         `json:"note,omitempty"`
	Settings InfillSettings `json:"settings"`
	Scored
}

// InfillSettings are the settings of an entrant, defaults included.
type InfillSettings struct {
	Sampler        string            `json:"sampler"`
	Exact          bool              `json:"sampler_exact"`
	SamplerOptions samplers.Settings `json:"sampler_options"`
	Energy         mlm.Form          `json:"energy"`
	MaskEmbedding  mlm.MaskEmbedding `json:"mask_embedding"`
	Gradient       mlm.Gradient      `json:"gradient"`
	Temperature    float64           `json:"temperature"`
	Chains         int               `json:"chains"`
	Steps          int               `json:"steps"`
	Warmup         int               `json:"warmup"`
	Init           infill.Start      `json:"init"`
	Pieces         bool              `json:"pieces"`
	Top            int               `json:"top"`
	Provider       string            `json:"provider"`
}

// Infill compares samplers on the sentences of a task file. If the comparison ends early, the result
// has the finished entrants, and is nil if there are none.
//
// Errors are *FileError, *infill.InputError, and those of packages models, ort and samplers.
func Infill(ctx context.Context, o InfillOptions) (r *InfillResult, err error) {
	c, r, err := o.prepare()
	if err != nil {
		return nil, err
	}
	src, err := models.Open(ctx, o.Model, o.Hub)
	if err != nil {
		return nil, err
	}
	energy := o.Energy
	energy.Runtime.Progress = nil // sessions do not download anything
	m, err := infill.Load(src, energy)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	// Check the task against the model before downloading the library.
	if _, err := c.Problems(m); err != nil {
		return nil, err
	}
	if err := ort.Init(ctx, o.Energy.Runtime); err != nil {
		return nil, err
	}
	if o.Begun != nil {
		if err := o.Begun(); err != nil {
			return nil, err
		}
	}
	r.ONNXRuntime, r.Model = ort.Version(), m.ID()
	err = c.Run(ctx, m, func(s Scored) error {
		reg, err := samplers.Lookup(s.Entrant.Draw.Sampler)
		if err != nil {
			return err
		}
		r.Samplers = append(r.Samplers, InfillEntrant{s.Entrant.Name, reg.Caveat(), o.record(reg, s.Entrant), s})
		if o.Done != nil {
			return o.Done(s)
		}
		return nil
	})
	if err != nil && len(r.Samplers) == 0 {
		return nil, err
	}
	if r.Interrupted = err != nil; r.Interrupted {
		err = fmt.Errorf("%d of %d samplers finished: %w", len(r.Samplers), len(c.Entrants), err)
	}
	return r, err
}

// prepare reads the input files.
func (o *InfillOptions) prepare() (*Infilling, *InfillResult, error) {
	c := &Infilling{File: o.Task, Words: o.Words, Keep: cmp.Or(o.Keep, KeepLast), Top: o.Top, Entrants: o.Entrants, Progress: o.Progress}
	items, data, err := ReadTask(o.Task)
	if err != nil {
		return nil, nil, err
	}
	c.Items = items
	if err := c.Check(); err != nil {
		return nil, nil, err
	}
	refs, err := ReadReferences(o.References)
	if err != nil {
		return nil, nil, err
	}
	removed := make([]int, len(refs))
	c.References = refs
	if !o.Originals {
		if c.References, removed, err = RemoveOriginals(refs, c.Items); err != nil {
			return nil, nil, &FileError{Path: o.Task, Err: fmt.Errorf("all sentences of a reference file are in the task: %w", err)}
		}
	}
	c.Metrics = Mixture(o.Mix, c.References)
	sum := sha256.Sum256(data)
	r := &InfillResult{
		Gradhop: o.Version, Seed: c.Entrants[0].Draw.Seed, Task: TaskFile{o.Task, hex.EncodeToString(sum[:]), len(c.Items)},
		MixPerRef: o.Mix, Keep: c.Keep, Samplers: []InfillEntrant{},
	}
	for k, ref := range c.References {
		r.References = append(r.References, Reference{ref.Name, len(ref.Sentences), removed[k]})
	}
	return c, r, nil
}

func (o *InfillOptions) record(r samplers.Registration, e Entrant) InfillSettings {
	x, d := o.Energy, e.Draw
	return InfillSettings{
		Sampler: r.Name, Exact: r.Exact, SamplerOptions: r.Settings(d.Options),
		Energy: cmp.Or(x.Form, mlm.PLL), MaskEmbedding: cmp.Or(x.MaskEmbedding, mlm.MaskToken), Gradient: cmp.Or(x.Gradient, mlm.ExactGradient),
		Temperature: cmp.Or(x.Temperature, 1), Chains: d.Chains, Steps: d.Steps, Warmup: d.Warmup,
		Init: d.Init, Pieces: o.Words.Pieces, Top: o.Top, Provider: cmp.Or(x.Runtime.Provider, "cpu"),
	}
}

// Rows returns a CSV table: a header row and a row for each sampler with its settings.
func (r *InfillResult) Rows() [][]string {
	var rows [][]string
	for _, s := range r.Samplers {
		names, cells := s.Columns()
		c := s.Settings
		head, row := []string{"sampler", "exact"}, []string{c.Sampler, strconv.FormatBool(c.Exact)}
		head, row = append(head, names...), append(row, cells...)
		head = append(head, "options", "energy", "mask_embedding", "gradient_form", "temperature", "init", "chains", "steps", "warmup", "top", "keep",
			"seed", "model", "model_sha256", "gradhop", "onnxruntime")
		row = append(row, ListSettings(c.SamplerOptions, ";"), string(c.Energy), string(c.MaskEmbedding), string(c.Gradient),
			strconv.FormatFloat(c.Temperature, 'g', -1, 64), string(c.Init), strconv.Itoa(c.Chains), strconv.Itoa(c.Steps), strconv.Itoa(c.Warmup),
			strconv.Itoa(c.Top), string(r.Keep), strconv.FormatUint(r.Seed, 10), r.Model.Name, r.Model.SHA256, r.Gradhop, r.ONNXRuntime)
		if rows == nil {
			rows = append(rows, head)
		}
		rows = append(rows, row)
	}
	return rows
}

// ListSettings formats the options of a sampler in alphabetical order.
func ListSettings(s samplers.Settings, separator string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		list = append(list, name+"="+s[name])
	}
	return strings.Join(list, separator)
}
