// Package sample draws from the energy that an ONNX model computes, or from one of known form,
// and keeps the draws in a folder: settings, one run loop, resuming, joining split runs, diagnostics, and files
// for other programs. See package store for the folder.
//
//	o := sample.Defaults()
//	o.Model, o.Space, o.Out = "ebm.onnx", "binary:784", "run"
//	summary, err := sample.Run(ctx, o)
//
// A run that was interrupted goes on with the options that [Load] reads from its folder.
package sample

import (
	"math"
	"strconv"
	"time"

	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// Options are the settings of a run, named in its folder as the flags of gradhop sample.
// Start from [Defaults].
type Options struct {
	// Model is the ONNX file. Input takes the state and Output is the log-density; each
	// may be "" where the model has one.
	Model  string `json:"model"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
	// Negate says that the output is an energy E: U = -E. U is divided by Temperature.
	Negate      bool    `json:"negate,omitempty"`
	Temperature float64 `json:"temperature"`
	// Energy names an energy of known form instead of a model: see [known.Parse]. Model, Input,
	// Output, Negate, Space, Allow, Feed and Bind are then not used.
	Energy string `json:"energy,omitempty"`
	// Space is the set of states: see [ParseSpace]. Allow is a JSON file with the values
	// that sites may take, one list for all or one a site; "" allows every value.
	Space string `json:"space"`
	Allow string `json:"allow,omitempty"`
	// Feed has NAME=FILE for other inputs of the model, .npy or JSON, and Bind NAME=SIZE
	// for named dimensions.
	Feed []string `json:"feed,omitempty"`
	Bind []string `json:"bind,omitempty"`
	// MaxBatch bounds the chains in one run of the model; 0 is no bound.
	MaxBatch int `json:"max-batch,omitempty"`
	// OneByOne runs the model on one chain at a time. Otherwise the run begins with a check
	// that the rows of a batch do not interact.
	OneByOne bool `json:"one-by-one,omitempty"`

	// Sampler is a registered name, and Settings its options.
	Sampler  string            `json:"sampler"`
	Settings samplers.Settings `json:"settings,omitempty"`
	// Chains are numbered from 0. ChainIDs, as "0-31,40", runs some of them; "" runs all.
	Chains   int    `json:"chains"`
	ChainIDs string `json:"chain-ids,omitempty"`
	// Steps follow Warmup steps, in which the sampler is tuned. Every Thin-th is a draw.
	Steps  int `json:"steps"`
	Warmup int `json:"warmup"`
	Thin   int `json:"thin"`
	// Seed determines all random numbers.
	Seed uint64 `json:"seed"`
	// Init is where chains start: "random", "zeros", or a file of states, [chain, site].
	Init string `json:"init"`
	// PoolWarmup tunes one step size for all chains, which are then not independent.
	PoolWarmup bool `json:"pool-warmup,omitempty"`
	// OnNonFinite is "fail", or "reject": NaN and +Inf count as probability zero.
	OnNonFinite string `json:"on-nonfinite"`
	// Provider is where the model runs, as ort.Options.Provider has it.
	Provider string `json:"provider"`
	// Draft is a cheap stand-in for the model, by which the sampler proposes and the model
	// accepts: the same model on another provider, as "openvino:cpu,bf16", or another file over
	// the same space, *.onnx; "" is none. See samplers.TwoStage.
	Draft string `json:"draft,omitempty"`

	// SaveWarmup keeps the states of warm-up too.
	SaveWarmup bool `json:"save-warmup,omitempty"`
	// Write lists further files to write: csv, npz, png, or none. Empty means csv up to
	// export.CSVWidth sites, and png where states are pictures.
	Write []string `json:"write,omitempty"`
	// Picture is the size of states as pictures, HxW or HxWxC; "" takes it from the
	// model's input.
	Picture string `json:"picture,omitempty"`

	// Out is the folder of a new run. Resume is that of one to continue instead.
	Out    string `json:"-"`
	Resume string `json:"-"`
	// Every is the time between checkpoints; see store.Options.
	Every time.Duration `json:"-"`
	// Runtime says which library runs the model, with how many threads. Its Provider is
	// not used.
	Runtime ort.Options `json:"-"`
	// Version is that of the program, for the record. A run is continued by the same one.
	Version string `json:"-"`
	// Log, which may be nil, receives lines for people. Progress, which may be nil, is
	// called after every step.
	Log      func(line string) `json:"-"`
	Progress func(Progress)    `json:"-"`
}

// Progress is how far a run is.
type Progress struct {
	// Step of Steps steps are made, warm-up included.
	Step, Steps int64
	Warmup      bool
	// Acceptance is the mean acceptance probability of the step over the chains.
	Acceptance float64
}

// Defaults returns the settings that a run has unless they are changed.
func Defaults() Options {
	return Options{
		Temperature: 1, Sampler: "dmala", Settings: samplers.Settings{}, Chains: 64, Steps: 1000, Warmup: 500, Thin: 1,
		Init: "random", OnNonFinite: "fail", Provider: "cpu",
	}
}

// Check returns an *OptionError for settings that no model can make right.
func (o *Options) Check() error {
	const most = 1 << 40 // steps, so that sums do not overflow
	number := func(option string, n int, want string) error {
		return &OptionError{option, strconv.Itoa(n), "want " + want}
	}
	switch {
	case o.Chains < 1:
		return number("chains", o.Chains, "1 or more")
	case o.Steps < 1 || o.Steps > most:
		return number("steps", o.Steps, "1 or more, up to 2^40")
	case o.Warmup < 0 || o.Warmup > most:
		return number("warmup", o.Warmup, "0 or more, up to 2^40")
	case o.Thin < 1:
		return number("thin", o.Thin, "1 or more")
	case o.Thin > o.Steps:
		return number("thin", o.Thin, "at most the number of steps, "+strconv.Itoa(o.Steps)+", or no draw is kept")
	case o.MaxBatch < 0:
		return number("max-batch", o.MaxBatch, "0 or more")
	case !(o.Temperature > 0) || math.IsInf(o.Temperature, 1):
		return &OptionError{"temperature", strconv.FormatFloat(o.Temperature, 'g', -1, 64), "want a number above zero"}
	case o.OnNonFinite != "fail" && o.OnNonFinite != "reject":
		return &OptionError{"on-nonfinite", strconv.Quote(o.OnNonFinite), "want fail or reject"}
	case o.Energy != "" && (o.Model != "" || o.Space != "" || o.Allow != "" || o.Input+o.Output != "" || o.Negate || len(o.Feed)+len(o.Bind) > 0 || o.MaxBatch > 0 || o.OneByOne):
		return &OptionError{"energy", o.Energy, "it has its own states and needs no model, nor a model's options"}
	case o.Energy != "" && o.Temperature != 1:
		return &OptionError{"temperature", strconv.FormatFloat(o.Temperature, 'g', -1, 64), "an energy of known form has none; change its coupling"}
	case o.Space == "" && o.Energy == "":
		return &OptionError{"space", "", "want " + spaceForms}
	case o.PoolWarmup && o.ChainIDs != "":
		return &OptionError{"pool-warmup", "", "it makes chains depend on each other, so chain-ids cannot run some of them"}
	}
	for _, w := range o.Write {
		if w != "csv" && w != "npz" && w != "png" && w != "none" {
			return &OptionError{"write", strconv.Quote(w), "want csv, npz, png or none"}
		}
	}
	return o.checkDraft()
}

func (o *Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}
