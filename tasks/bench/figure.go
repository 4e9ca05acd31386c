package bench

import (
	"image"
	"image/png"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gradhop/gradhop/tasks/pages"
)

// Figure is a drawing of lines over one pair of axes, or an image.
type Figure struct {
	// Name tells the figures of an experiment apart.
	Name        string
	Title, X, Y string
	// LogX and LogY ask for logarithmic axes; all numbers on them must be positive.
	LogX, LogY bool
	Lines      []Line
	// Image, if not nil, is the figure; the other fields but Name are then not used.
	Image image.Image
}

// Line is a named line through points with increasing X.
type Line struct {
	Name string
	X, Y []float64
}

// WritePNG draws the figure, lines on 900 by 600 pixels.
func (f Figure) WritePNG(w io.Writer) error {
	if f.Image != nil {
		return png.Encode(w, f.Image)
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Legend.Top = true
	for axis, log := range map[*plot.Axis]bool{&p.X: f.LogX, &p.Y: f.LogY} {
		if log {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
	}
	p.Add(plotter.NewGrid())
	for k, line := range f.Lines {
		points := make(plotter.XYs, len(line.X))
		for i := range points {
			points[i] = plotter.XY{X: line.X[i], Y: line.Y[i]}
		}
		l, s, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		l.Color, s.Color, s.Shape = pages.Colour(k), pages.Colour(k), draw.CircleGlyph{}
		p.Add(l, s)
		p.Legend.Add(line.Name, l, s)
	}
	image, err := p.WriterTo(9*vg.Inch, 6*vg.Inch, "png")
	if err != nil {
		return err
	}
	_, err = image.WriteTo(w)
	return err
}
