package run

import (
	"math"
	"slices"
	"time"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/infill"
)

// Result is what a run on one text came to.
type Result struct {
	Input       string         `json:"input"`
	Blanks      []infill.Blank `json:"blanks"`
	Results     []Sentence     `json:"results"`
	Diagnostics Diagnostics    `json:"diagnostics"`
	// Interrupted says that the run ended early.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Sentence is one of the best sentences.
type Sentence struct {
	Text  string   `json:"text"`
	Fills []string `json:"fills"`
	// LogP is the log-density in nats, not normalised and not divided by the
	// temperature.
	LogP  Number `json:"logp"`
	Chain int64  `json:"chain"` // that met it first
	Step  int64  `json:"step"`  // at which it did, warm-up included, counted from 1
}

// Diagnostics sum a run up, over the steps after warm-up where not said otherwise.
type Diagnostics struct {
	// Steps is the number of steps made after warm-up.
	Steps int64 `json:"steps"`
	// Acceptance is the mean acceptance probability, Hops the mean number of blanks
	// that a step changes.
	Acceptance Number `json:"acceptance"`
	Hops       Number `json:"hops"`
	// StepSize is the median over the chains; NaN for samplers without one.
	StepSize Number `json:"step_size"`
	// RHat and ESSBulk are of the log-density.
	RHat    Number `json:"rhat"`
	ESSBulk Number `json:"ess_bulk"`
	// RHatBlanks and ESSBlanks are those of the blank that mixes worst, judged by its
	// most frequent word.
	RHatBlanks Number `json:"rhat_blanks"`
	ESSBlanks  Number `json:"ess_bulk_blanks"`
	// Evaluations is the number of states evaluated, warm-up and the states that chains
	// start from included.
	Evaluations int64 `json:"evaluations"`
	// Seconds is the time of all steps, without loading the model.
	Seconds float64 `json:"seconds"`
}

func result(p *infill.Problem, best *infill.Best, temperature float64) *Result {
	r := &Result{Input: p.Text, Blanks: p.Blanks, Results: []Sentence{}}
	for _, s := range best.Sentences() {
		r.Results = append(r.Results, Sentence{Text: s.Text, Fills: s.Fills, LogP: Number(s.U * temperature), Chain: s.Chain, Step: s.Step})
	}
	return r
}

func diagnose(loop *samplers.Loop, t *trace, took time.Duration) Diagnostics {
	r := loop.Result()
	d := Diagnostics{Steps: r.Kept, Evaluations: r.State.Evaluations.Total(), Seconds: took.Seconds()}
	d.Acceptance, d.Hops, d.StepSize = NaN, NaN, NaN
	if r.Kept > 0 {
		d.Acceptance, d.Hops = mean(r.Acceptance), mean(r.Hops)
	}
	if sizes := slices.Clone(r.State.Var(samplers.StepSizeVar)); len(sizes) > 0 {
		slices.Sort(sizes)
		d.StepSize = Number((sizes[len(sizes)/2] + sizes[(len(sizes)-1)/2]) / 2)
	}
	d.RHat, d.ESSBulk = t.density()
	d.RHatBlanks, d.ESSBlanks = t.blanks()
	return d
}

func mean(x []float64) Number {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return Number(sum / float64(len(x)))
}

// NaN is what is not known.
var NaN = Number(math.NaN())
