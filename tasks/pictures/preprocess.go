package pictures

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Preprocessor makes pictures into what a vision tower takes. It is immutable and may be
// used concurrently. [ReadPreprocessor] makes one.
type Preprocessor struct {
	s             settings
	kernel        kernel
	height, width int
	value         [3][256]float32 // of a byte of each colour
}

// newPreprocessor wants settings that are valid and make pictures of one size.
func newPreprocessor(s settings) *Preprocessor {
	p := &Preprocessor{s: s, kernel: kernels[s.Resample], height: s.CropHeight, width: s.CropWidth}
	if !s.Crop {
		p.height, p.width = s.Height, s.Width
	}
	for c := range p.value {
		for b := range p.value[c] {
			p.value[c][b] = s.value(c, b)
		}
	}
	return p
}

// value rescales in double and normalises in single precision, as the reference does.
func (s settings) value(colour, b int) float32 {
	v := float32(b)
	if s.Rescale {
		v = float32(float64(b) * s.Factor)
	}
	if s.Normalise {
		v = (v - float32(s.Mean[colour])) / float32(s.Deviation[colour])
	}
	return v
}

// Size is that of every result, in pixels.
func (p *Preprocessor) Size() (height, width int) { return p.height, p.width }

// Values is the number of float32 that a picture becomes: 3 height width.
func (p *Preprocessor) Values() int { return 3 * p.height * p.width }

// decoding changes when the same file becomes other pixels in a new version of this package.
const decoding = 2

// Digest stands for everything that decides what a file becomes: 64 hex digits.
func (p *Preprocessor) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "pictures %d %+v", decoding, p.s))
	return hex.EncodeToString(sum[:])
}

// Apply writes a picture as the vision tower takes it, [3, height, width], to dst, whose
// length must be [Preprocessor.Values].
func (p *Preprocessor) Apply(dst []float32, m *Picture) {
	q := p.Resized(m)
	plane := p.height * p.width
	dst = dst[: 3*plane : 3*plane]
	for i := range plane {
		dst[i] = p.value[0][q.Pix[3*i]]
		dst[plane+i] = p.value[1][q.Pix[3*i+1]]
		dst[2*plane+i] = p.value[2][q.Pix[3*i+2]]
	}
}

// Resized is the first half of [Preprocessor.Apply]: the picture resized and cropped, still
// in bytes. What a crop reaches beyond the picture is black. Pillow before 13.0 resampled rows
// before columns whatever the shape, so that its results for pictures that lose more than
// twice as much height as width differ by rounding.
func (p *Preprocessor) Resized(m *Picture) *Picture {
	fullHeight, fullWidth := p.full(m)
	out := newPicture(p.width, p.height)
	x := p.along(fullWidth, p.width)
	y := p.along(fullHeight, p.height)
	if x.n <= 0 || y.n <= 0 {
		return out
	}
	part := m.resize(p.kernel, fullWidth, fullHeight, x.from, y.from, x.n, y.n, p.s.Fast)
	for row := range y.n {
		copy(out.Pix[3*((y.to+row)*p.width+x.to):][:3*x.n], part.Pix[3*row*x.n:])
	}
	return out
}

// full is the size of the whole picture after resizing. The longer edge keeps the aspect
// ratio, cut to a whole number.
func (p *Preprocessor) full(m *Picture) (height, width int64) {
	height, width = int64(m.Height), int64(m.Width)
	if !p.s.Resize {
		return height, width
	}
	if p.s.Edge == 0 {
		return int64(p.s.Height), int64(p.s.Width)
	}
	edge := int64(p.s.Edge)
	longer := func(long, short int64) int64 { return int64(float64(edge*long) / float64(short)) }
	if width <= height {
		return longer(height, width), edge
	}
	return edge, longer(width, height)
}

// span is the part of a line that a centre crop keeps.
type span struct {
	from int64 // its place in the line
	to   int   // its place in the result
	n    int
}

// along crops a line of full samples to n. Of an odd difference the larger half is cut
// behind; of an odd gap it is left in front. torchvision rounds half of an odd difference to
// an even number, and leaves the larger half of a gap behind.
func (p *Preprocessor) along(full int64, n int) span {
	if full >= int64(n) {
		from := (full - int64(n)) / 2
		if p.s.Torchvision && (full-int64(n))%2 == 1 {
			from += from % 2
		}
		return span{from: from, n: n}
	}
	gap := n - int(full)
	if p.s.Torchvision {
		return span{to: gap / 2, n: int(full)}
	}
	return span{to: (gap + 1) / 2, n: int(full)}
}
