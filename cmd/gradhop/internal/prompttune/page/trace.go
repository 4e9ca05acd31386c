package page

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/internal/pages"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

// mostBuckets bounds the points of a line. It is even.
const mostBuckets = 400

// trace is what the figures show of the steps so far, thinned: neighbouring steps share a
// bucket, which becomes twice as wide whenever there are too many. The zero value is
// empty.
type trace struct {
	width  int64       // steps of a bucket
	in     int64       // steps in the last one
	chains [][]float64 // sums of U over the steps of a bucket, [chain, bucket]
	all    int         // chains of the run, of which the first are drawn
	beta   []float64   // sums of the inverse temperature
	best   []float64   // best cosine at the end of a bucket, NaN before the first prompt
}

// add shows one step: U of all chains, the prompts kept so far, the inverse temperature.
func (t *trace) add(u []float64, found []prompttune.Prompt, beta float64) {
	if t.chains == nil {
		t.width, t.in, t.all = 1, 1, len(u)
		t.chains = make([][]float64, min(len(u), pages.MostLines))
	}
	if t.in == t.width || len(t.beta) == 0 {
		if len(t.beta) == mostBuckets {
			t.merge()
		}
		for c := range t.chains {
			t.chains[c] = append(t.chains[c], 0)
		}
		t.beta, t.best, t.in = append(t.beta, 0), append(t.best, math.NaN()), 0
	}
	k := len(t.beta) - 1
	for c := range t.chains {
		t.chains[c][k] += u[c]
	}
	t.beta[k] += beta
	if len(found) > 0 {
		t.best[k] = found[0].U
	}
	t.in++
}

// merge makes one bucket of two. All must be full.
func (t *trace) merge() {
	for _, sums := range append(slices.Clone(t.chains), t.beta) {
		for k := range mostBuckets / 2 {
			sums[k] = sums[2*k] + sums[2*k+1]
		}
	}
	for k := range mostBuckets / 2 {
		t.best[k] = t.best[2*k+1]
	}
	for c := range t.chains {
		t.chains[c] = t.chains[c][:mostBuckets/2]
	}
	t.beta, t.best = t.beta[:mostBuckets/2], t.best[:mostBuckets/2]
	t.width *= 2
}

// steps returns the middle of each bucket, and means of sums.
func (t *trace) steps() []float64 {
	x := make([]float64, len(t.beta))
	for k := range x {
		x[k] = float64(int64(k)*t.width) + float64(t.size(k)+1)/2
	}
	return x
}

// size is the number of steps in a bucket.
func (t *trace) size(k int) int64 {
	if k == len(t.beta)-1 {
		return t.in
	}
	return t.width
}

func (t *trace) means(sums []float64) []float64 {
	y := make([]float64, len(sums))
	for k, v := range sums {
		y[k] = v / float64(t.size(k))
	}
	return y
}

// figures draws U of the chains by step with the best so far, and the inverse
// temperature where it changes.
func (t *trace) figures(d *prompttune.Document) ([]pages.Figure, error) {
	if len(t.beta) == 0 {
		return nil, nil
	}
	x := t.steps()
	var curves []pages.Curve
	for c, sums := range t.chains {
		curves = append(curves, pages.Curve{X: x, Y: t.means(sums), Colour: pages.Colour(c), Width: 0.9})
	}
	curves = append(curves, pages.Curve{X: x, Y: t.best, Colour: color.RGBA{0x1c, 0x24, 0x30, 0xff}, Width: 2.5})
	caption := "A line a chain: U of its tokens at inverse temperature 1. Thick and dark: the best " + d.Score() + " of a prompt so far."
	if d.Estimates {
		caption = "A line a chain: the estimate of U from the pictures drawn in a step, which is noisy. Thick and dark: the best " + d.Score() + " of a prompt so far, exact."
	}
	if t.all > len(t.chains) {
		caption += fmt.Sprintf(" The first %d of %d chains.", len(t.chains), t.all)
	}
	if t.width > 1 {
		caption += fmt.Sprintf(" Averages of %d steps.", t.width)
	}
	if w := d.Settings.Warmup; w > 0 {
		caption += fmt.Sprintf(" Steps up to %d are warm-up.", w)
	}
	svg, err := pages.Curves("step", d.Score(), curves)
	if err != nil {
		return nil, err
	}
	out := []pages.Figure{{Title: strings.ToUpper(d.Score()[:1]) + d.Score()[1:] + " by step", Caption: caption, SVG: svg}}
	beta := t.means(t.beta)
	if slices.Min(beta) == slices.Max(beta) {
		return out, nil
	}
	svg, err = pages.Curves("step", "beta", []pages.Curve{{X: x, Y: beta, Colour: pages.Colour(0), Width: 1.5}})
	if err != nil {
		return nil, err
	}
	return append(out, pages.Figure{
		Title: "Inverse temperature by step", SVG: svg,
		Caption: fmt.Sprintf("beta = %s, t the step. The greater it is, the more chains keep to prompts with a high U.", d.Settings.Beta),
	}), nil
}
