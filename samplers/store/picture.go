package store

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

// Picture says how the sites of a space make a picture. Zero fields are guessed.
type Picture struct {
	// Height and Width are in pixels; both zero means a square.
	Height, Width int
	// Channels is 1, grey, or 3, red, green and blue; 0 means 1, or 3 where only
	// that makes a square.
	Channels int
	// Interleaved says that the channels of a pixel are next to each other, [height,
	// width, channel]; the default is one plane after the other, as in PyTorch.
	Interleaved bool
	// Most is the largest number of chains to show; 0 means 64.
	Most int
	// Scale is the edge of a pixel; 0 makes a picture of about 64 pixels.
	Scale int
}

// PictureError reports sites that do not make a picture.
type PictureError struct{ Reason string }

func (e *PictureError) Error() string { return "store: picture: " + e.Reason }

// ExitCode returns 2: bad usage or input.
func (*PictureError) ExitCode() int { return 2 }

// Resolve fills in what is to be guessed for a space, or returns a *PictureError:
// its sites do not make such a picture, or its values are no shades.
func (p Picture) Resolve(s Space) (Picture, error) {
	if s.Kind == "categorical" {
		return p, &PictureError{"the values of a categorical space are no shades"}
	}
	if p.Channels == 0 {
		p.Channels = 1
		if p.Height == 0 && p.Width == 0 && !square(s.Sites) && s.Sites%3 == 0 && square(s.Sites/3) {
			p.Channels = 3
		} else if h, w := p.Height, p.Width; h > 0 && w > 0 && 3*h*w == s.Sites {
			p.Channels = 3
		}
	}
	if p.Channels != 1 && p.Channels != 3 {
		return p, &PictureError{fmt.Sprintf("%d channels; 1 or 3 can be shown", p.Channels)}
	}
	pixels := s.Sites / p.Channels
	switch {
	case p.Height < 0 || p.Width < 0:
		return p, &PictureError{fmt.Sprintf("%d by %d pixels", p.Height, p.Width)}
	case p.Height == 0 && p.Width == 0:
		p.Height = int(math.Round(math.Sqrt(float64(pixels))))
		p.Width = p.Height
	case p.Height == 0:
		p.Height = pixels / p.Width
	case p.Width == 0:
		p.Width = pixels / p.Height
	}
	if p.Height*p.Width*p.Channels != s.Sites {
		return p, &PictureError{fmt.Sprintf("%d sites are not %d by %d pixels of %d channels", s.Sites, p.Height, p.Width, p.Channels)}
	}
	if p.Most <= 0 {
		p.Most = 64
	}
	if p.Scale <= 0 {
		p.Scale = max(1, 64/max(p.Height, p.Width))
	}
	return p, nil
}

func square(n int) bool {
	root := int(math.Round(math.Sqrt(float64(n))))
	return root*root == n
}

// gap is the width of the lines between pictures.
const gap = 2

// Grid draws the last draw of each chain, in rows. Values go from black, the
// lowest of the space, to white. Errors are *PictureError and *FormatError.
func (r *Reader) Grid(p Picture) (image.Image, error) {
	p, err := p.Resolve(r.header.Space)
	if err != nil {
		return nil, err
	}
	if r.draws[Sampling] == 0 {
		return nil, &PictureError{"no draw yet"}
	}
	n := min(r.Chains(), p.Most)
	across := int(math.Ceil(math.Sqrt(float64(n))))
	down := (n + across - 1) / across
	wide, high := p.Width*p.Scale+gap, p.Height*p.Scale+gap
	img := image.NewRGBA(image.Rect(0, 0, across*wide+gap, down*high+gap))
	for k := range img.Pix {
		img.Pix[k] = 0x80
		if k%4 == 3 {
			img.Pix[k] = 0xff
		}
	}
	lo, hi := r.header.Space.bounds()
	for c := range n {
		x, err := r.Last(Sampling, c)
		if err != nil {
			return nil, err
		}
		p.draw(img, image.Pt(gap+c%across*wide, gap+c/across*high), x, lo, hi)
	}
	return img, nil
}

// draw puts one draw at a place.
func (p Picture) draw(img *image.RGBA, at image.Point, x []int32, lo, hi int) {
	shade := func(row, col, channel int) uint8 {
		k := (channel*p.Height+row)*p.Width + col
		if p.Interleaved {
			k = (row*p.Width+col)*p.Channels + channel
		}
		return uint8(math.Round(255 * float64(int(x[k])-lo) / float64(hi-lo)))
	}
	for row := range p.Height {
		for col := range p.Width {
			c := color.RGBA{shade(row, col, 0), 0, 0, 0xff}
			c.G, c.B = c.R, c.R
			if p.Channels == 3 {
				c.G, c.B = shade(row, col, 1), shade(row, col, 2)
			}
			for i := range p.Scale * p.Scale {
				img.SetRGBA(at.X+col*p.Scale+i%p.Scale, at.Y+row*p.Scale+i/p.Scale, c)
			}
		}
	}
}

// WritePNG writes the grid as a PNG file. Errors are those of Grid and
// *WriteError.
func (r *Reader) WritePNG(path string, p Picture) error {
	img, err := r.Grid(p)
	if err != nil {
		return err
	}
	return writeWhole(path, func(w io.Writer) error { return png.Encode(w, img) })
}
