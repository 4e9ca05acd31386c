package run

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Energy are the flags that choose a masked language model and the energy made from it.
type Energy struct {
	Model         string // as for models.Open
	Form          string
	MaskEmbedding string
	Gradient      string
	Temperature   float64
	MaxBatch      int
}

// DefaultEnergy returns the settings that flags start from.
func DefaultEnergy() Energy {
	return Energy{
		Model: models.Default, Form: string(mlm.PLL), MaskEmbedding: string(mlm.MaskToken),
		Gradient: string(mlm.ExactGradient), Temperature: 1,
	}
}

// AddFlags defines a flag for each field, with its present value as default.
func (e *Energy) AddFlags(fs *pflag.FlagSet) {
	e.AddModelFlags(fs)
	fs.StringVar(&e.Gradient, "gradient", e.Gradient, "gradient behind proposals: exact, or direct (no backward pass)")
	fs.Float64Var(&e.Temperature, "temperature", e.Temperature, "divide the log-density by this")
}

// AddModelFlags defines the flags of an energy that is not sampled.
func (e *Energy) AddModelFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.Model, "model", e.Model, "`name` of a built-in model, folder with model.onnx, config.json and a tokenizer, or owner/name[@revision][#variant] on the Hugging Face Hub")
	fs.StringVar(&e.Form, "energy", e.Form, "energy `form`: pll, pll-raw or mrf")
	fs.StringVar(&e.MaskEmbedding, "mask-embedding", e.MaskEmbedding, "embedding of a masked blank: mask (that of the mask token) or zero")
	fs.IntVar(&e.MaxBatch, "max-batch", e.MaxBatch, "largest number of sequences in one run of the model; 0 for as many as fit the cache, -1 for no limit")
}

// Open finds the model and the runtime.
func (e *Energy) Open(ctx context.Context, a *app.App) (*infill.Model, error) {
	o, err := e.options(a)
	if err != nil {
		return nil, err
	}
	return infill.Open(ctx, e.Model, a.Hub(), o)
}

// Load finds the model, for a runtime whose library is found later.
func (e *Energy) Load(ctx context.Context, a *app.App) (*infill.Model, error) {
	o, err := e.options(a)
	if err != nil {
		return nil, err
	}
	src, err := models.Open(ctx, e.Model, a.Hub())
	if err != nil {
		return nil, err
	}
	o.Runtime.Progress = nil // nothing is fetched any more when sessions are opened
	return infill.Load(src, o)
}

func (e *Energy) options(a *app.App) (mlm.Options, error) {
	if !(e.Temperature > 0) {
		return mlm.Options{}, app.Usagef("--temperature %v: want a number above zero", e.Temperature)
	}
	return mlm.Options{
		Form: mlm.Form(e.Form), MaskEmbedding: mlm.MaskEmbedding(e.MaskEmbedding), Gradient: mlm.Gradient(e.Gradient),
		Temperature: e.Temperature, MaxBatch: e.MaxBatch, Runtime: a.Runtime(),
	}, nil
}
