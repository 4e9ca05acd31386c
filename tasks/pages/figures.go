package pages

import (
	"bytes"
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
)

// Limits of what is drawn: lines of a figure and points of a line.
const (
	MostLines  = 12
	MostPoints = 800
)

// palette holds colours that people who cannot tell some apart can (Okabe and Ito 2008),
// without the yellow, which is faint on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
}

// Colour is that of the k-th line.
func Colour(k int) color.RGBA { return palette[k%len(palette)] }

// mostHeight bounds what is drawn, so that differences are numbers.
const mostHeight = 1e300

// Curve is a line through points. Where Y is not finite, or beyond 1e300, nothing is drawn.
type Curve struct {
	X, Y   []float64
	Colour color.RGBA
	Width  float64 // in the units of a drawing 480 wide
}

// Curves draws curves, the later over the earlier, with labels for the axes.
func Curves(x, y string, curves []Curve) (template.HTML, error) {
	p := newPlot(x, y)
	for _, c := range curves {
		var points plotter.XYs
		for i, v := range c.Y {
			if math.Abs(v) <= mostHeight {
				points = append(points, plotter.XY{X: c.X[i], Y: v})
			}
		}
		if len(points) == 0 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return "", err
		}
		l.Color, l.Width = c.Colour, vg.Points(c.Width)
		p.Add(l)
	}
	widen(&p.Y)
	return render(p, 480, 280)
}

// Lines draws rows over 0, 1, … shifted by from. Long ones are thinned to the mean of
// neighbours; nothing is drawn where a value is not finite.
func Lines(x, y string, rows [][]float64, from int) (template.HTML, error) {
	curves := make([]Curve, len(rows))
	for k, row := range rows {
		curves[k].Colour, curves[k].Width = Colour(k), 1
		width := max(1, (len(row)+MostPoints-1)/MostPoints)
		for lo := 0; lo < len(row); lo += width {
			part := row[lo:min(len(row), lo+width)]
			sum := 0.0
			for _, v := range part {
				sum += v / float64(len(part))
			}
			curves[k].X = append(curves[k].X, float64(from+lo)+float64(len(part)-1)/2)
			curves[k].Y = append(curves[k].Y, sum)
		}
	}
	return Curves(x, y, curves)
}

// letters is the height of all text, in the units of a drawing 480 wide, which a narrow
// screen shrinks to three quarters.
const letters = 14

// Sans is the font of all text.
var Sans = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(letters)}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = Sans, Sans
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

// mostTicks is more than there are, and bounds them where numbers are so large that steps
// between them are lost.
const mostTicks = 10

func (ticks) Ticks(lo, hi float64) []plot.Tick {
	mark := func(v float64) plot.Tick {
		return plot.Tick{Value: v, Label: strings.Replace(strconv.FormatFloat(v, 'g', 6, 64), "-", "\u2212", 1)}
	}
	span := hi - lo
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	if !(span > 0 && step > 0) || math.IsInf(span, 1) {
		return []plot.Tick{mark(lo)}
	}
	for _, k := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if span/step <= 6 {
			break
		}
		step *= k
	}
	var out []plot.Tick
	for k := math.Ceil(lo/step) + 0; k*step <= hi && len(out) < mostTicks; k++ { // + 0 makes 0 of -0
		out = append(out, mark(k*step))
	}
	return out
}

// widen makes room on an axis whose numbers are as good as equal.
func widen(a *plot.Axis) {
	if pad := 1e-6 * math.Abs(a.Max); a.Min <= a.Max && a.Max-a.Min < pad {
		a.Min, a.Max = a.Min-pad, a.Max+pad
	}
}

func render(p *plot.Plot, width, height float64) (template.HTML, error) {
	c := vgsvg.New(vg.Points(width), vg.Points(height))
	p.Draw(draw.New(c))
	return Markup(c)
}

// Markup returns the drawing without what comes before its svg element, so that it can
// stand in a page.
func Markup(c *vgsvg.Canvas) (template.HTML, error) {
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
