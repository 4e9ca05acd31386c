package pictures

import "image"

// Within returns the picture so small that no edge is longer than side pixels, with its
// aspect ratio; the picture itself where it is not larger. side is at least 1.
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

// Image returns a copy of the picture for the encoders of Go's image packages.
func (p *Picture) Image() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	for i := range p.Width * p.Height {
		copy(m.Pix[4*i:], p.Pix[3*i:3*i+3])
		m.Pix[4*i+3] = 0xff
	}
	return m
}
