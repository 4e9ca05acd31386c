package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/samplers/store"
)

// Limits of what is drawn: chains as lines of their own, points of a line, lags, bins
// and histograms.
const (
	mostLines  = 12
	mostPoints = 800
	mostLags   = 60
	rankBins   = 20
	mostRanks  = 12
)

// palette holds colours that people who cannot tell some apart can (Okabe and Ito 2008),
// without the yellow, which is faint on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
}

func colour(k int) color.RGBA { return palette[k%len(palette)] }

// figures draws the run.
func figures(r *store.Reader) ([]figure, error) {
	u, err := r.Series(store.Sampling, "lp")
	if err != nil {
		return nil, err
	}
	shown := ""
	if len(u) > mostLines {
		shown = fmt.Sprintf(" The first %d of %d chains.", mostLines, len(u))
	}
	var out []figure
	add := func(title, caption string, svg template.HTML, err error) error {
		out = append(out, figure{title, caption, svg})
		return err
	}
	svg, err := lines("draw", "U, nats", first(u), 0)
	if err := add("Trace of U", "Log-density after warm-up, a line a chain."+shown, svg, err); err != nil {
		return nil, err
	}
	var acf [][]float64
	for _, x := range first(u) {
		acf = append(acf, diag.Autocorrelation(x, mostLags))
	}
	svg, err = lines("lag, draws", "autocorrelation of U", acf, 0)
	if err := add("Autocorrelation of U", "The faster it falls to zero, the more a draw is worth."+shown, svg, err); err != nil {
		return nil, err
	}
	svg, err = ranks(u, r.Header().ChainIDs)
	if err := add("Rank histograms of U", "Ranks of each chain's draws among all draws. Where chains have mixed each is flat; one that leans has another distribution than the rest.", svg, err); err != nil {
		return nil, err
	}
	for _, s := range []struct{ name, label, title, caption string }{
		{"acceptance_rate", "acceptance probability", "Acceptance over time", "Mean over the chains, warm-up included; averaged over neighbouring steps."},
		{"step_size", "step size", "Step size over time", "A line a chain; adapted in warm-up, and fixed from draw 0 on." + shown},
	} {
		x, warm, err := through(r, s.name)
		if err != nil {
			return nil, err
		}
		if x == nil {
			continue
		}
		if s.name == "acceptance_rate" {
			x = [][]float64{overall(x)}
		}
		svg, err := lines("draw (warm-up below 0)", s.label, first(x), -warm)
		if err := add(s.title, s.caption, svg, err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func first(x [][]float64) [][]float64 { return x[:min(len(x), mostLines)] }

// through returns a statistic from the first step of warm-up on, and how many draws of
// warm-up there are; nil where the run has no such statistic.
func through(r *store.Reader, name string) (x [][]float64, warm int, err error) {
	has := func(p store.Phase) bool {
		for _, s := range r.Statistics(p) {
			if s == name {
				return r.Draws(p) > 0
			}
		}
		return false
	}
	if !has(store.Sampling) {
		return nil, 0, nil
	}
	if x, err = r.Series(store.Sampling, name); err != nil || !has(store.Warmup) {
		return x, 0, err
	}
	before, err := r.Series(store.Warmup, name)
	if err != nil {
		return nil, 0, err
	}
	for c := range x {
		x[c] = append(before[c], x[c]...)
	}
	return x, r.Draws(store.Warmup), nil
}

// overall is the mean over chains.
func overall(x [][]float64) []float64 {
	out := make([]float64, len(x[0]))
	for _, c := range x {
		for k, v := range c {
			out[k] += v / float64(len(x))
		}
	}
	return out
}

// lines draws rows over 0, 1, … shifted by from. Long ones are thinned to the mean of
// neighbours; gaps are left where a value is not finite.
func lines(x, y string, rows [][]float64, from int) (template.HTML, error) {
	p := newPlot(x, y)
	for k, row := range rows {
		width := max(1, (len(row)+mostPoints-1)/mostPoints)
		var points plotter.XYs
		for lo := 0; lo < len(row); lo += width {
			part := row[lo:min(len(row), lo+width)]
			sum := 0.0
			for _, v := range part {
				sum += v / float64(len(part))
			}
			if math.IsNaN(sum) || math.IsInf(sum, 0) {
				continue
			}
			points = append(points, plotter.XY{X: float64(from+lo) + float64(len(part)-1)/2, Y: sum})
		}
		if len(points) == 0 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return "", err
		}
		l.Color, l.Width = colour(k), vg.Points(1)
		p.Add(l)
	}
	return render(p, 480, 280)
}

// letters is the height of all text, in the units of a drawing 480 wide, which a narrow
// screen shrinks to three quarters.
const letters = 14

var sans = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(letters)}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans, sans
		a.Tick.Marker, a.Tick.Length, a.Padding = ticks{}, vg.Points(4), vg.Points(2)
	}
	p.BackgroundColor = color.White
	grid := plotter.NewGrid()
	faint := color.RGBA{0xe4, 0xe8, 0xed, 0xff}
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

// ticks marks about five round numbers, written as short as they are.
type ticks struct{}

func (ticks) Ticks(lo, hi float64) []plot.Tick {
	span := hi - lo
	if !(span > 0) || math.IsInf(span, 1) {
		return plot.DefaultTicks{}.Ticks(lo, hi)
	}
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, k := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if span/step <= 6 {
			break
		}
		step *= k
	}
	var out []plot.Tick
	for k := math.Ceil(lo/step) + 0; k*step <= hi; k++ { // + 0 makes 0 of -0
		text := strconv.FormatFloat(k*step, 'g', 6, 64)
		out = append(out, plot.Tick{Value: k * step, Label: strings.Replace(text, "-", "\u2212", 1)})
	}
	return out
}

// ranks draws a small histogram for each of the first chains.
func ranks(u [][]float64, ids []int64) (template.HTML, error) {
	counts := diag.RankCounts(u, rankBins)
	counts = counts[:min(len(counts), mostRanks)]
	across := 3
	if len(counts) <= 4 {
		across = 2
	}
	down := (len(counts) + across - 1) / across
	c := vgsvg.New(vg.Points(480), vg.Points(max(260, float64(100*down))))
	tiles := draw.Tiles{Rows: down, Cols: across, PadX: vg.Points(10), PadY: vg.Points(8), PadTop: vg.Points(2)}
	area := draw.New(c)
	for k, list := range counts {
		p := plot.New()
		p.Title.Text = fmt.Sprintf("chain %d", ids[k])
		p.Title.TextStyle.Font, p.Title.Padding = sans, vg.Points(2)
		p.HideAxes()
		v := make(plotter.Values, len(list))
		total := 0
		for i, n := range list {
			v[i] = float64(n)
			total += n
		}
		bars, err := plotter.NewBarChart(v, vg.Points(0.85*(480/float64(across)-20)/rankBins))
		if err != nil {
			return "", err
		}
		bars.Color, bars.LineStyle.Width = colour(k), 0
		flat, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: float64(total) / rankBins}, {X: rankBins - 0.5, Y: float64(total) / rankBins}})
		if err != nil {
			return "", err
		}
		flat.Color, flat.Dashes = color.Black, []vg.Length{vg.Points(2), vg.Points(2)}
		p.Add(bars, flat)
		p.Y.Min = 0
		p.Draw(tiles.At(area, k%across, k/across))
	}
	return markup(c)
}

func render(p *plot.Plot, width, height float64) (template.HTML, error) {
	c := vgsvg.New(vg.Points(width), vg.Points(height))
	p.Draw(draw.New(c))
	return markup(c)
}

// markup returns the drawing without what comes before its svg element, so that it can
// stand in a page.
func markup(c *vgsvg.Canvas) (template.HTML, error) {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	text := b.Bytes()
	if k := bytes.Index(text, []byte("<svg")); k > 0 {
		text = text[k:]
	}
	return template.HTML(text), nil // our own drawing: numbers and fixed labels
}
