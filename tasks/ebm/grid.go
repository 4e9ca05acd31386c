package ebm

import (
	"image"
	"image/color"
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Grid draws states as grey images side by side, with a border of one pixel: as many
// columns as make the grid about square. codes are [chain, site], height x width sites.
// The lowest value is black and the highest white.
func Grid(space *energies.Space, codes []int32, height, width int) *image.Paletted {
	n := len(codes) / space.Sites
	cols := int(math.Ceil(math.Sqrt(float64(n))))
	rows := (n + cols - 1) / cols
	im := image.NewPaletted(image.Rect(0, 0, cols*(width+1)+1, rows*(height+1)+1), greys(space.Values))
	border := uint8(len(im.Palette) - 1)
	for i := range im.Pix {
		im.Pix[i] = border
	}
	levels := len(im.Palette) - 1
	for k := range n {
		left, top := k%cols*(width+1)+1, k/cols*(height+1)+1
		for i := range space.Sites {
			level := int(codes[k*space.Sites+i]) * (levels - 1) / max(space.Values-1, 1)
			im.SetColorIndex(left+i%width, top+i/width, uint8(level))
		}
	}
	return im
}

// greys is a palette of at most 255 grey levels and the border's colour.
func greys(values int) color.Palette {
	n := min(max(values, 2), 255)
	p := make(color.Palette, 0, n+1)
	for k := range n {
		p = append(p, color.Gray{Y: uint8(255 * k / (n - 1))})
	}
	return append(p, color.RGBA{R: 70, G: 90, B: 140, A: 255})
}

// Enlarge makes every pixel a square of the given side.
func Enlarge(im *image.Paletted, side int) *image.Paletted {
	b := im.Bounds()
	out := image.NewPaletted(image.Rect(0, 0, b.Dx()*side, b.Dy()*side), im.Palette)
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.SetColorIndex(x, y, im.ColorIndexAt(x/side, y/side))
		}
	}
	return out
}
