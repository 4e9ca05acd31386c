package experiment

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gradhop/gradhop/internal/pages"
)

// HeatMap is a table of positive numbers. Cells are coloured by the ratio to the largest number of their
// column, on a logarithmic scale over three powers of ten, and show the number.
type HeatMap struct {
	Rows, Columns []string
	// Values is [row][column]; NaN where there is no number.
	Values [][]float64
}

var _ plotter.GridXYZ = shades{}

// shades are the colours of a heat map, 0 to 1, rows from the bottom.
type shades struct{ m *HeatMap }

func (s shades) Dims() (c, r int) { return len(s.m.Columns), len(s.m.Rows) }

func (s shades) X(c int) float64 { return float64(c) }

func (s shades) Y(r int) float64 { return float64(r) }

func (s shades) Z(c, r int) float64 {
	top := 0.0
	for _, row := range s.m.Values {
		if row[c] > top {
			top = row[c]
		}
	}
	v := s.m.Values[len(s.m.Rows)-1-r][c]
	if !(v > 0) {
		return math.NaN()
	}
	return max(0, 1+math.Log10(v/top)/3)
}

// ramp goes from white to blue.
type ramp struct{}

func (ramp) Colors() []color.Color {
	var list []color.Color
	for k := range 64 {
		fade := uint8(255 - 3*k)
		list = append(list, color.RGBA{fade, uint8(255 - 2*k), 255, 255})
	}
	return list
}

var _ palette.Palette = ramp{}

// writeMap draws the heat map of f.
func (f Figure) writeMap(w io.Writer) error {
	m, p := f.Map, pages.NewPlot("", "")
	p.Title.Text = f.Title
	h := plotter.NewHeatMap(shades{m}, ramp{})
	h.Min, h.Max, h.NaN = 0, 1, color.Gray{230}
	p.Add(h)
	var points plotter.XYLabels
	names := make([]string, len(m.Rows))
	for r, row := range m.Values {
		y := len(m.Rows) - 1 - r
		names[y] = m.Rows[r]
		for c, v := range row {
			text := "-"
			if v > 0 {
				text = fmt.Sprintf("%.3g", v)
			}
			points.XYs, points.Labels = append(points.XYs, plotter.XY{X: float64(c), Y: float64(y)}), append(points.Labels, text)
		}
	}
	labels, err := plotter.NewLabels(points)
	if err != nil {
		return err
	}
	for k := range labels.TextStyle {
		labels.TextStyle[k].Font = pages.Sans
		labels.TextStyle[k].XAlign, labels.TextStyle[k].YAlign = draw.XCenter, draw.YCenter
	}
	p.Add(labels)
	p.NominalX(m.Columns...)
	p.NominalY(names...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/8, draw.XRight, draw.YCenter
	return writePlot(w, p, vg.Length(2+len(m.Columns))*vg.Inch, vg.Length(6+len(m.Rows))*vg.Inch/3)
}
