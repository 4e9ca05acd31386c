package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Energy holds the flags that select a masked language model and its energy.
type Energy struct {
	Model string // a reference for models.Open
	mlm.Options
}

// AddFlags defines the flags for an energy that is sampled.
func (e *Energy) AddFlags(cmd *cobra.Command) {
	e.AddModelFlags(cmd)
	Choice(cmd, &e.Gradient, "gradient", "gradient used by proposals: direct skips the backward pass", string(mlm.ExactGradient), string(mlm.DirectGradient))
	cmd.Flags().Float64Var(&e.Temperature, "temperature", 1, "divide the log-density by this `number`")
}

// AddModelFlags defines the flags for an energy that is not sampled.
func (e *Energy) AddModelFlags(cmd *cobra.Command) {
	e.Form, e.MaskEmbedding, e.Gradient, e.Temperature = mlm.PLL, mlm.MaskToken, mlm.ExactGradient, 1
	f := cmd.Flags()
	f.StringVar(&e.Model, "model", models.Default, "`name` of a built-in model, folder with model.onnx, config.json and a tokenizer, or owner/name[@revision][#variant] on the Hugging Face Hub")
	Choice(cmd, &e.Form, "energy", "form of the energy", string(mlm.PLL), string(mlm.PLLRaw), string(mlm.MRF))
	Choice(cmd, &e.MaskEmbedding, "mask-embedding", "embedding of a masked blank: the mask token's, or zero", string(mlm.MaskToken), string(mlm.MaskZero))
	f.IntVar(&e.MaxBatch, "max-batch", 0, "maximum `number` of sequences in one run of the model; 0 for as many as fit into the processor's cache, -1 for no limit")
	CompleteModels(cmd, models.MLMs())
}

// Check returns an error for an invalid temperature.
func (e *Energy) Check() error {
	if !(e.Temperature > 0) {
		return Usagef("--temperature %v: want a number above zero", e.Temperature)
	}
	return nil
}

// Open opens the model and the runtime.
func (e *Energy) Open(ctx context.Context, a *App) (*infill.Model, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	e.Runtime = a.Runtime()
	return infill.Open(ctx, e.Model, a.Hub(), e.Options)
}
