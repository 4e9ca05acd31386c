package ebm

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/tasks/ebm"
	"github.com/gradhop/gradhop/tasks/ebm/dataset"
)

// scoreOptions are the flags of gradhop ebm score.
type scoreOptions struct {
	model
	ebm.ScoreSettings
	base, data, format string
	binarize           dataset.Binarization
}

// result is what is printed.
type result struct {
	*ebm.Score
	Collapsed bool `json:"collapsed"`
	// LogLikelihood is the mean of U - log Z over the data in nats; absent without data.
	LogLikelihood *float64 `json:"log_likelihood,omitempty"`
	Rows          int      `json:"rows,omitempty"`
	Model         string   `json:"model"`
	SHA256        string   `json:"model_sha256"`
	Space         string   `json:"space"`
	Sampler       string   `json:"sampler"`
	Schedule      string   `json:"schedule"`
	Seed          uint64   `json:"seed"`
	Gradhop       string   `json:"gradhop"`
}

func newScore(a *app.App) *cobra.Command {
	o := &scoreOptions{}
	cmd := &cobra.Command{
		Use:   "score MODEL.onnx --space SPACE",
		Short: "Estimate log Z and the log-likelihood of data by annealed importance sampling",
		Long: `Estimate log Z = log Σ exp(U) by annealed importance sampling (Neal 2001), and with --data
the mean log-likelihood of states, U - log Z, in nats.

Chains start at the marginals of --base, or at uniform states. A larger number of levels
brings them closer to the model. Where few weights dominate the estimate, a warning says so.`,
		Example: `  gradhop ebm score run/model.onnx --space binary:784 --base train-images-idx3-ubyte.gz --data t10k-images-idx3-ubyte.gz --binarize static --levels 10000`,
		Args:    app.Args("one model"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.IntVar(&o.Chains, "chains", 100, "`number` of chains, one weight each")
	f.IntVar(&o.Levels, "levels", 1000, "`number` of inverse temperatures")
	o.Schedule, o.Sampler = ebm.Linear, "gwg"
	app.Choice(cmd, &o.Schedule, "schedule", "spacing of the levels", ebm.Linear, ebm.Sigmoid)
	app.SamplerFlag(cmd, &o.Sampler, "sampler, which must be exact")
	f.IntVar(&o.Steps, "steps", 1, "`number` of steps a level")
	f.StringVar(&o.base, "base", "", "`file` or folder with data whose marginals chains start from (default: uniform)")
	f.StringVar(&o.data, "data", "", "`file` or folder with data whose log-likelihood to print")
	binarizeFlag(cmd, &o.binarize)
	f.Uint64Var(&o.Seed, "seed", 0, "`number` that determines all random numbers")
	app.Format(cmd, &o.format, "text", "json")
	app.SamplerFlags(f, &o.Options)
	return cmd
}

func (o *scoreOptions) run(ctx context.Context, a *app.App, path string) error {
	e, space, file, err := o.energy(a, path)
	if err != nil {
		return err
	}
	defer e.Close()
	var data *dataset.Data
	if o.base != "" {
		if data, err = dataset.Load(o.base, &space, o.binarize, o.Seed); err != nil {
			return err
		}
		o.Base = data.Marginals(0.01)
	}
	if o.data != "" {
		if data, err = dataset.Load(o.data, &space, o.binarize, o.Seed); err != nil {
			return err
		}
	}
	bar := a.NewBar()
	o.Progress = func(level, levels int) { bar.Show("annealing", int64(level), int64(levels), "") }
	score, err := ebm.AIS(ctx, e, nil, o.ScoreSettings)
	bar.Clear()
	if err != nil {
		return err
	}
	r := result{Score: score, Collapsed: score.Collapsed(), Model: path, SHA256: file.SHA256, Space: space.String(),
		Sampler: o.Sampler, Schedule: o.Schedule, Seed: o.Seed, Gradhop: app.Version()}
	if o.data != "" {
		mean, err := meanU(ctx, e, data)
		if err != nil {
			return err
		}
		ll := mean - score.LogZ
		r.LogLikelihood, r.Rows = &ll, data.Rows
	}
	if r.Collapsed {
		a.Logf("warning: %.1f effective weights of %d; the estimate and its standard error are not to be trusted, use more levels", score.ESS, score.Chains)
	}
	if o.format == "json" {
		return app.JSON(a.Out, r)
	}
	text := fmt.Sprintf("log Z %.3f ± %.3f nats, %d chains, %d levels, %.1f effective weights, %d evaluations, %.1f s\n",
		score.LogZ, score.StandardError, score.Chains, score.Levels, score.ESS, score.Evaluations, score.Seconds)
	if r.LogLikelihood != nil {
		text += fmt.Sprintf("log-likelihood %.3f nats, mean of %d rows\n", *r.LogLikelihood, r.Rows)
	}
	text += fmt.Sprintf("model %s (sha256 %.12s), %s, schedule %s, seed %d, gradhop %s\n", path, file.SHA256, o.Sampler, o.Schedule, o.Seed, r.Gradhop)
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// meanU is the mean of U over the rows of data.
func meanU(ctx context.Context, e *neural.Model, data *dataset.Data) (float64, error) {
	const batch = 256
	total := 0.0
	for lo := 0; lo < data.Rows; lo += batch {
		x := energies.NewBatch(e.Space(), min(batch, data.Rows-lo))
		for c := range x.Chains() {
			data.Row(x.Chain(c), lo+c, 0)
		}
		u := make([]float64, x.Chains())
		if err := e.LogDensity(ctx, u, x); err != nil {
			return 0, err
		}
		for _, v := range u {
			total += v
		}
	}
	mean := total / float64(data.Rows)
	if math.IsNaN(mean) {
		return 0, &ebm.Error{Reason: "U of the data is not a number", Code: 1}
	}
	return mean, nil
}
