package ebm

import (
	"encoding/csv"
	"image/color"
	"io"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// curve is a column of the log and how it is drawn.
type curve struct {
	column, label string
	factor        float64
}

// panels are the drawings of [WriteCurves], from the top.
var panels = [][]curve{
	{{"data_u", "U of data, nats", 1}, {"samples_u", "U of samples, nats", 1}},
	{{"gap", "U of data less U of samples, nats", 1}, {"hops", "sites changed a step", 1}, {"accept", "10 x acceptance", 10}},
}

// mostPoints is the number of points in a curve; more updates are averaged.
const mostPoints = 100

// WriteCurves draws the log of a training ([LogFile]) as a PNG of 700 by 600 pixels: above,
// U of data and of samples; below, their difference, the number of sites that a sampler step
// changes, and the acceptance. The error is an *onnx.ArgumentError: the log has no such columns or no updates.
func WriteCurves(w io.Writer, log io.Reader) error {
	rows, err := csv.NewReader(log).ReadAll()
	if err != nil || len(rows) == 0 {
		return inputError("the log of a training: no table: %v", err)
	}
	head, rows := rows[0], rows[1:]
	colours := []color.Color{color.RGBA{31, 119, 180, 255}, color.RGBA{214, 90, 20, 255}, color.RGBA{44, 140, 60, 255}}
	var drawn [][]*plot.Plot
	for _, panel := range panels {
		p := plot.New()
		p.X.Label.Text, p.Legend.Top = "update", panel[0].column == "gap"
		p.Add(plotter.NewGrid())
		for k, c := range panel {
			points, err := c.points(head, rows)
			if err != nil {
				return err
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return inputError("the log of a training: column %s: %v", c.column, err)
			}
			line.Color, line.Width = colours[k], vg.Points(1.5)
			p.Add(line)
			p.Legend.Add(c.label, line)
		}
		drawn = append(drawn, []*plot.Plot{p})
	}
	img := vgimg.NewWith(vgimg.UseWH(7*vg.Inch, 6*vg.Inch), vgimg.UseDPI(100))
	tiles := draw.Tiles{Rows: len(drawn), Cols: 1, PadY: vg.Points(8), PadTop: vg.Points(4), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(12)}
	for i, canvases := range plot.Align(drawn, tiles, draw.New(img)) {
		drawn[i][0].Draw(canvases[0])
	}
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

// points returns at most mostPoints means of equally many updates.
func (c curve) points(head []string, rows [][]string) (plotter.XYs, error) {
	x, y := slices.Index(head, "update"), slices.Index(head, c.column)
	if x < 0 || y < 0 {
		return nil, inputError("the log of a training has no column update or %s", c.column)
	}
	var points plotter.XYs
	for part := range slices.Chunk(rows, max(1, (len(rows)+mostPoints-1)/mostPoints)) {
		mean := plotter.XY{}
		for _, row := range part {
			u, err := strconv.ParseFloat(row[x], 64)
			v, err2 := strconv.ParseFloat(row[y], 64)
			if err != nil || err2 != nil {
				return nil, inputError("the log of a training, update %q: %q is not a number", row[x], row[y])
			}
			mean.X, mean.Y = u, mean.Y+c.factor*v/float64(len(part))
		}
		points = append(points, mean)
	}
	return points, nil
}
