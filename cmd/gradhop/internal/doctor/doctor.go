// Package doctor is the command that says whether the program can run here: which
// runtime library it uses and how it was found, and whether the built-in models work.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies/neural/clip"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/ort/library"
	"github.com/gradhop/gradhop/tasks/ebm"
	"github.com/gradhop/gradhop/tasks/infill"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

// Options are the flags of the command.
type Options struct {
	App    *app.App
	Model  string
	Fetch  bool
	Format string
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the runtime library and the built-in models",
		Long: `Print which onnxruntime library is used, its version and how it was found, or every
place that was tried; the devices of a plug-in provider; and run each model once with the
--provider that is asked for, whose results are compared with those of the provider cpu.
Nothing is downloaded unless --fetch is set. The exit code is 3 where something is
missing or does not work.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", "", "`name` of a built-in model, folder, or owner/name on the Hugging Face Hub to try (default: all built-in models)")
	f.BoolVar(&o.Fetch, "fetch", false, "download the library and the model if they are not here")
	app.Format(cmd, &o.Format, "text", "json")
	return cmd
}

// Report is what the doctor found.
type Report struct {
	Gradhop  string `json:"gradhop"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// BFloat16 names the processor's instructions for products of bfloat16 numbers, or is "".
	BFloat16 string  `json:"bfloat16"`
	Library  Library `json:"onnxruntime"`
	Models   []Check `json:"models"`
	OK       bool    `json:"ok"`
}

// Library is the runtime library, or why there is none.
type Library struct {
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	How     string `json:"how,omitempty"`
	// Providers are those that it was built with; a machine may lack what they need.
	Providers []string `json:"built_with,omitempty"`
	// Devices are those of the plug-in provider that --provider names.
	Devices []ort.Device `json:"devices,omitempty"`
	Tried   []Tried      `json:"tried,omitempty"` // without success
	Error   string       `json:"error,omitempty"`
}

// Tried is a place where no usable library was.
type Tried struct {
	How   string `json:"how"`
	Path  string `json:"path"`
	Error string `json:"error"`
	text  string
}

// Check is a model that was run once.
type Check struct {
	Name     string  `json:"name"`
	Summary  string  `json:"summary,omitempty"` // of a built-in model
	SHA256   string  `json:"sha256,omitempty"`  // of a CLIP, that of its text tower
	Licence  string  `json:"licence,omitempty"`
	Provider string  `json:"provider"`
	Seconds  float64 `json:"seconds,omitempty"` // to load it and to evaluate one state
	Error    string  `json:"error,omitempty"`
}

// Run examines and prints. Where something does not work its error is returned too,
// the library's first.
func Run(ctx context.Context, o *Options) error {
	r, failed := examine(ctx, o)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	if o.Format == "json" {
		err = app.JSON(o.App.Out, r)
	} else {
		err = r.text(o.App.Out)
	}
	if err != nil {
		return err
	}
	return failed
}

func examine(ctx context.Context, o *Options) (Report, error) {
	r := Report{Gradhop: app.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, BFloat16: ort.BFloat16()}
	rt := o.App.Runtime()
	h := o.App.Hub()
	rt.NoFetch, h.Offline = !o.Fetch || o.App.Offline, !o.Fetch || o.App.Offline
	lib := r.Library.find(ctx, rt)
	failed := lib
	names := []string{o.Model}
	if o.Model == "" {
		names = models.BuiltIn()
	}
	for _, name := range names {
		c := Check{Name: name, Provider: o.App.Provider}
		if err := c.try(ctx, h, rt, lib == nil); failed == nil {
			failed = err
		}
		r.Models = append(r.Models, c)
	}
	r.OK = failed == nil
	return r, failed
}

// find fills in l.
func (l *Library) find(ctx context.Context, rt ort.Options) error {
	found, err := library.Find(ctx, rt.Search())
	var tried []library.Attempt
	var none *library.UnavailableError
	switch {
	case err == nil:
		tried = found.Tried
		err = ort.LoadProvider(ctx, rt)
	case errors.As(err, &none) && none.Tried != nil:
		// The report lists the places tried.
		tried = none.Tried
		err = &library.UnavailableError{What: none.What, Do: "gradhop doctor --fetch downloads one"}
	}
	for _, a := range tried {
		l.Tried = append(l.Tried, Tried{How: a.How, Path: a.Path, Error: fmt.Sprint(a.Err), text: a.String()})
	}
	if err != nil {
		l.Error = err.Error()
		return err
	}
	l.Version, l.Path, l.How, l.Providers = found.Version, found.Path, found.How, ort.Providers()
	for _, d := range ort.Devices() {
		if !slices.Contains(l.Providers, d.Provider) {
			l.Devices = append(l.Devices, d)
		}
	}
	return nil
}

// try fills in c. Without a library only the files are looked at.
func (c *Check) try(ctx context.Context, h hub.Options, rt ort.Options, library bool) (err error) {
	defer func() {
		if err != nil {
			c.Error = err.Error()
		}
	}()
	name, folder, once := c.Name, "", c.tryMLM
	if towers, e := models.OpenTowers(ctx, name, h); e == nil && isCLIP(towers) {
		c.Name, c.SHA256, folder, once = towers.Name, towers.TextSHA256, towers.Dir, c.tryCLIP
	} else if m, e := models.OpenEBM(ctx, name, h); e == nil {
		c.Name, c.SHA256, folder, once = m.Name, m.SHA256, m.Dir, c.tryEBM
	} else {
		src, err := models.Open(ctx, name, h)
		if err != nil {
			return err
		}
		c.Name, c.SHA256, folder = src.Name, src.SHA256, src.Dir
	}
	if e, ok := models.Describe(c.Name); ok && folder == "" {
		c.Licence, c.Summary = e.Licence, e.Summary
	}
	if !library {
		return nil
	}
	began := time.Now()
	if err := once(ctx, name, h, rt); err != nil {
		return err
	}
	c.Seconds = time.Since(began).Seconds()
	return nil
}

// isCLIP tells a CLIP in one file from a masked language model.
func isCLIP(t models.Towers) bool {
	_, err := fs.Stat(t.FS, "preprocessor_config.json")
	return err == nil || t.Text != t.Vision
}

// tryMLM runs a masked language model once.
func (c *Check) tryMLM(ctx context.Context, name string, h hub.Options, rt ort.Options) (err error) {
	m, err := infill.Open(ctx, name, h, mlm.Options{Runtime: rt})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return m.Try(ctx)
}

// tryEBM runs a deep energy-based model once.
func (c *Check) tryEBM(ctx context.Context, name string, h hub.Options, rt ort.Options) error {
	m, err := models.OpenEBM(ctx, name, h)
	if err != nil {
		return err
	}
	rt.Progress = nil
	return ebm.Try(ctx, m, rt)
}

// tryCLIP runs both towers of a CLIP once.
func (c *Check) tryCLIP(ctx context.Context, name string, h hub.Options, rt ort.Options) (err error) {
	src, err := models.OpenTowers(ctx, name, h)
	if err != nil {
		return err
	}
	rt.Progress = nil
	m, err := prompttune.Load(src, clip.Options{Runtime: rt})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return m.Try(ctx)
}
