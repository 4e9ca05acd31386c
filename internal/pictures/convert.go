package pictures

import (
	"image"
	"image/color"
	"image/draw"
)

// chroma converts planes of luma and subsampled chroma to RGB; dst holds the pixels of m.
type chroma func(dst []byte, m *image.YCbCr)

// convert returns the Picture of a decoded image. ycc is nil for formats without such planes.
func convert(m image.Image, err error, ycc chroma) (*Picture, error) {
	if err != nil {
		return nil, err
	}
	b := m.Bounds()
	p := newPicture(b.Dx(), b.Dy())
	switch m := m.(type) {
	case *image.YCbCr:
		ycc(p.Pix, m)
	case *image.NYCbCrA:
		ycc(p.Pix, &m.YCbCr)
		for y := range p.Height {
			at := m.AOffset(b.Min.X, b.Min.Y+y)
			for x, a := range m.A[at : at+p.Width] {
				over(p.Pix[3*(y*p.Width+x):], a)
			}
		}
	default:
		p.rows(m)
	}
	return p, nil
}

func (p *Picture) rows(m image.Image) {
	b, w := m.Bounds(), p.Width
	for y := range p.Height {
		dst := p.Pix[3*y*w:][:3*w]
		switch m := m.(type) {
		case *image.Gray:
			at := m.PixOffset(b.Min.X, b.Min.Y+y)
			for x, v := range m.Pix[at : at+w] {
				dst[3*x], dst[3*x+1], dst[3*x+2] = v, v, v
			}
		case *image.Gray16:
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				v := src[2*x]
				dst[3*x], dst[3*x+1], dst[3*x+2] = v, v, v
			}
		case *image.RGBA: // decoders use it only for opaque images
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				copy(dst[3*x:3*x+3], src[4*x:])
			}
		case *image.RGBA64: // likewise
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				dst[3*x], dst[3*x+1], dst[3*x+2] = src[8*x], src[8*x+2], src[8*x+4]
			}
		case *image.NRGBA:
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				copy(dst[3*x:3*x+3], src[4*x:])
				over(dst[3*x:], src[4*x+3])
			}
		case *image.NRGBA64:
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				dst[3*x], dst[3*x+1], dst[3*x+2] = src[8*x], src[8*x+2], src[8*x+4]
				over(dst[3*x:], src[8*x+6])
			}
		case *image.CMYK:
			src := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range w {
				inks(dst[3*x:], src[4*x:])
			}
		default: // *image.Paletted
			for x := range w {
				c := color.NRGBAModel.Convert(m.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA)
				dst[3*x], dst[3*x+1], dst[3*x+2] = c.R, c.G, c.B
				over(dst[3*x:], c.A)
			}
		}
	}
}

// over composites one pixel of opacity a over white, in place.
func over(rgb []byte, a uint8) {
	if a == 255 {
		return
	}
	for i, s := range rgb[:3] {
		rgb[i] = div255(int(s)*int(a) + 255*(255-int(a)))
	}
}

// div255 returns v / 255 rounded to nearest, for v up to 255².
func div255(v int) uint8 { return uint8((v + 127) / 255) }

// inks converts CMYK, where 255 is full ink, to RGB.
func inks(rgb, cmyk []byte) {
	paper := 255 - int(cmyk[3])
	for i := range 3 {
		rgb[i] = uint8(max(0, paper-int(div255(int(cmyk[i])*paper))))
	}
}

// onCanvas composites a frame of an animation over a white canvas.
func onCanvas(m image.Image, width, height int) *Picture {
	if m.Bounds() != image.Rect(0, 0, width, height) {
		canvas := image.NewNRGBA(image.Rect(0, 0, width, height))
		draw.Draw(canvas, m.Bounds(), m, m.Bounds().Min, draw.Src)
		m = canvas
	}
	p := newPicture(width, height)
	p.rows(m)
	return p
}

func (p *Picture) onWhite(width, height int, at image.Point) *Picture {
	canvas := newPicture(width, height)
	for i := range canvas.Pix {
		canvas.Pix[i] = 255
	}
	for row := range p.Height {
		copy(canvas.Pix[3*((at.Y+row)*width+at.X):], p.Pix[3*row*p.Width:3*(row+1)*p.Width])
	}
	return canvas
}
