package run

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Energy says which energy is sampled.
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
	fs.StringVar(&e.Model, "model", e.Model, "`name` of a built-in model, folder with model.onnx, config.json and a tokenizer, or owner/name[@revision][#variant] on the Hugging Face Hub")
	fs.StringVar(&e.Form, "energy", e.Form, "energy `form`: pll, pll-raw or mrf")
	fs.StringVar(&e.MaskEmbedding, "mask-embedding", e.MaskEmbedding, "what the model sees at a masked blank: mask (its token) or zero")
	fs.StringVar(&e.Gradient, "gradient", e.Gradient, "gradient behind proposals: exact, or direct (no backward pass)")
	fs.Float64Var(&e.Temperature, "temperature", e.Temperature, "divide the log-density by this")
	fs.IntVar(&e.MaxBatch, "max-batch", e.MaxBatch, "most sequences in one run of the model; 0 for as many as suit the cache, -1 for no bound")
}

// check returns an error for a value that no model can make right.
func (e *Energy) check() error {
	if !(e.Temperature > 0) {
		return &neural.OptionError{Option: "temperature", Value: fmt.Sprint(e.Temperature), Want: "a number above zero"}
	}
	return nil
}

func (e *Energy) options() mlm.Options {
	return mlm.Options{
		Form: mlm.Form(e.Form), MaskEmbedding: mlm.MaskEmbedding(e.MaskEmbedding), Gradient: mlm.Gradient(e.Gradient),
		Temperature: e.Temperature, MaxBatch: e.MaxBatch,
	}
}

// Chains says how it is sampled.
type Chains struct {
	Sampler string // a registered name
	// Options are those of the sampler, by flag name.
	Options       samplers.Settings
	Chains        int
	Steps, Warmup int
	Init          string
	Pieces        bool
	Top           int // sentences to keep
	Seed          uint64
}

// DefaultChains returns the settings that flags start from.
func DefaultChains() Chains {
	return Chains{
		Sampler: "dmala", Options: samplers.Settings{},
		Chains: 25, Steps: 50, Warmup: 50, Init: string(infill.StartMask), Top: 5,
	}
}

// AddFlags defines a flag for each field but Seed, and one for each option of the
// samplers that are registered.
func (c *Chains) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&c.Chains, "chains", c.Chains, "chains, all in one batch")
	fs.IntVar(&c.Steps, "steps", c.Steps, "steps after warm-up")
	fs.IntVar(&c.Warmup, "warmup", c.Warmup, "steps before, in which step sizes are adapted")
	fs.StringVar(&c.Init, "init", c.Init, "where chains start: mask (drawn from the model's prediction with all blanks masked), argmax (its most probable words) or random (uniform)")
	fs.BoolVar(&c.Pieces, "pieces", c.Pieces, `also propose pieces "##x", which continue the word before them`)
	fs.IntVar(&c.Top, "top", c.Top, "distinct sentences to keep, the best of all that were visited")
	fs.StringVar(&c.Sampler, "sampler", c.Sampler, "`name` of the sampler; gradhop samplers lists them")
	app.SamplerFlags(fs, &c.Options)
}

// infillCan is what the energy of a text with blanks answers.
var infillCan = (*mlm.Infill)(nil).Capabilities()

// Check returns an error for settings that no text can make right. It fills nothing in.
func (c *Chains) Check() error {
	switch infill.Start(c.Init) {
	case infill.StartMask, infill.StartArgmax, infill.StartRandom:
	default:
		return &infill.OptionError{Option: "init", Value: c.Init, Want: "mask, argmax or random"}
	}
	switch {
	case c.Chains < 1 || c.Chains > 1<<20:
		return &infill.OptionError{Option: "chains", Value: fmt.Sprint(c.Chains), Want: "1 to 2^20"}
	case c.Steps < 0 || c.Warmup < 0 || c.Steps+c.Warmup == 0:
		return &infill.OptionError{Option: "steps and warmup", Value: fmt.Sprintf("%d and %d", c.Steps, c.Warmup), Want: "0 or more each, and not both 0"}
	case c.Top < 0:
		return &infill.OptionError{Option: "top", Value: fmt.Sprint(c.Top), Want: "0 or more"}
	}
	r, err := c.Registration()
	if err != nil {
		return err
	}
	return r.Check(infillCan, c.Options)
}

// Registration returns the sampler that the settings mean.
func (c *Chains) Registration() (samplers.Registration, error) {
	return samplers.Lookup(c.Sampler)
}
