package store

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/samplers/diag"
)

// Weighed says what the numbers of a table are where draws count by weights.
const Weighed = "Draws are weighted: means, deviations and quantiles are those of the weighted law, errors and effective sample sizes are of " +
	"weighted means, and R-hat compares what the draws contribute to them."

// shareLimit is the share of a draw in all of the weight beyond which a table warns.
const shareLimit = 0.05

// weights reads the weights of draws, [chain][draw]; nil where they count the same.
func (r *Reader) weights() ([][]float64, error) {
	if !r.header.Weighted() {
		return nil, nil
	}
	return r.Series(Sampling, Weight)
}

// weigh says what there is to say of the weights; nil ones are equal.
func (t *Table) weigh(weights [][]float64) {
	if weights == nil {
		return
	}
	t.Weighted, t.WeightESS = true, Number(diag.WeightESS(weights))
	if !t.WeightESS.finite() {
		if t.Draws > 0 {
			t.Warnings = append(t.Warnings, "weights that are NaN, infinite or negative, or none above zero: all numbers are NA")
		}
		return
	}
	total, most := 0.0, 0.0
	for _, row := range weights {
		most = max(most, slices.Max(row))
	}
	for _, row := range weights {
		for _, w := range row {
			total += w / most // whose sum is finite where that of w may not be
		}
	}
	if share := 1 / total; share > shareLimit {
		t.Warnings = append(t.Warnings, fmt.Sprintf("one draw has %.0f%% of all weight: means rest on few draws", 100*share))
	}
}

// missed warns where a sampler whose draws are weighted left no weights: runs of programs
// that did not record them.
func (t *Table) missed(h Header) {
	if h.Sampler == "sgdld" && !h.Weighted() {
		t.Warnings = append(t.Warnings, "draws of sgdld are weighted, and this run has no weights: its numbers are not those of its law")
	}
}

// betaSetting is the setting that names the inverse temperature of a run, where it is not 1:
// a number, or a schedule as samplers.ParseSchedule reads it.
const betaSetting = "beta"

// moved warns where the draws of a run are of a law that changed from step to step.
func (t *Table) moved(h Header) {
	beta, given := h.Settings[betaSetting]
	if _, err := strconv.ParseFloat(beta, 64); given && err != nil {
		t.Warnings = append(t.Warnings, fmt.Sprintf("the inverse temperature of the run is no constant (%s): its draws are of no one law that means and quantiles could be of", beta))
	}
}

// Heading says that draws are weighted, to be put behind their number; "" where they
// count the same.
func (t *Table) Heading() string {
	if !t.Weighted {
		return ""
	}
	return fmt.Sprintf(", weighted: as uneven as %s equal ones of %d", t.WeightESS.Text(0), t.Chains*t.Draws)
}
