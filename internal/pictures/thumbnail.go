package pictures

import "image"

// Within returns the picture shrunk, with its aspect ratio, so that no edge is longer than side pixels;
// the picture itself if it is small enough. side must be at least 1.
func (p *Picture) Within(side int) *Picture {
	long := max(p.Width, p.Height)
	if long <= side {
		return p
	}
	// No overflow: pictures have fewer than 2^31 pixels on an edge.
	edge := func(n int) int { return max(1, int((int64(n)*int64(side)+int64(long)/2)/int64(long))) }
	w, h := edge(p.Width), edge(p.Height)
	return p.resize(kernels[3], int64(w), int64(h), 0, 0, w, h, false)
}

// Image returns a copy of the picture for Go's image encoders.
func (p *Picture) Image() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	for i := range p.Width * p.Height {
		copy(m.Pix[4*i:], p.Pix[3*i:3*i+3])
		m.Pix[4*i+3] = 0xff
	}
	return m
}
