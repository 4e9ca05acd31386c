package jpeg

import (
	"image"

	"github.com/gradhop/gradhop/tasks/pictures/internal/ycbcr"
)

// ratios are the chroma subsamplings by luma's sampling factors.
var ratios = map[[2]int]image.YCbCrSubsampleRatio{
	{1, 1}: image.YCbCrSubsampleRatio444,
	{2, 1}: image.YCbCrSubsampleRatio422,
	{2, 2}: image.YCbCrSubsampleRatio420,
	{1, 2}: image.YCbCrSubsampleRatio440,
	{4, 1}: image.YCbCrSubsampleRatio411,
	{4, 2}: image.YCbCrSubsampleRatio410,
}

// zigzag is the place in a block, in rows, of each coefficient of a file.
var zigzag = [64]int{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// image transforms all blocks.
func (f *file) image() (image.Image, error) {
	across, down := f.mcus()
	size := image.Rect(0, 0, 8*f.wide*across, 8*f.high*down)
	for _, p := range f.parts {
		if f.quant[p.quant] == nil {
			return nil, errUnusual
		}
	}
	kept := image.Rect(0, 0, f.width, f.height)
	if len(f.parts) == 1 {
		m := image.NewGray(size)
		f.parts[0].transform(m.Pix, m.Stride, f.quant[f.parts[0].quant])
		return m.SubImage(kept), nil
	}
	m := image.NewYCbCr(size, ratios[[2]int{f.wide, f.high}])
	for i, plane := range [][]byte{m.Y, m.Cb, m.Cr} {
		stride := m.CStride
		if i == 0 {
			stride = m.YStride
		}
		f.parts[i].transform(plane, stride, f.quant[f.parts[i].quant])
	}
	m = m.SubImage(kept).(*image.YCbCr)
	if len(f.parts) == 4 {
		return f.inked(m)
	}
	if f.adobe && f.transform != 1 {
		return nil, errUnusual
	}
	return m, nil
}

// inked adds the fourth plane to three. Files with four components hold inks inverted: 255
// is none. In YCCK the first three stand for the RGB that these three inks leave.
func (f *file) inked(m *image.YCbCr) (image.Image, error) {
	if f.adobe && f.transform == 1 || f.transform == 0 && m.SubsampleRatio != image.YCbCrSubsampleRatio444 {
		return nil, errUnusual
	}
	black := f.parts[3]
	plane := make([]byte, 64*len(black.coef))
	black.transform(plane, 8*black.stride, f.quant[black.quant])
	cmyk := image.NewCMYK(image.Rect(0, 0, f.width, f.height))
	rgb := make([]byte, 3*f.width*f.height)
	if f.transform == 2 {
		Chroma(rgb, m)
	}
	for i := range f.width * f.height {
		x, y := i%f.width, i/f.width
		if f.transform == 0 {
			luma, chroma := m.YOffset(x, y), m.COffset(x, y)
			rgb[3*i], rgb[3*i+1], rgb[3*i+2] = 255-m.Y[luma], 255-m.Cb[chroma], 255-m.Cr[chroma]
		}
		copy(cmyk.Pix[4*i:4*i+3], rgb[3*i:])
		cmyk.Pix[4*i+3] = 255 - plane[8*black.stride*y+x]
	}
	return cmyk, nil
}

// transform writes the samples of a component.
func (p *component) transform(plane []byte, stride int, quant *[64]int32) {
	var block [64]int32
	for i := range p.coef {
		for k, v := range p.coef[i] {
			block[zigzag[k]] = int32(v) * quant[k]
		}
		inverse(&block)
		at := plane[8*(i/p.stride)*stride+8*(i%p.stride):]
		for y := range 8 {
			for x, v := range block[8*y : 8*y+8] {
				at[y*stride+x] = ycbcr.Clip(v + 128)
			}
		}
	}
}

// inverse is the inverse cosine transform of Loeffler, Ligtenberg and Moschytz (ICASSP 1989)
// with the roundings of libjpeg's accurate integer method: constants have 13 bits of
// fraction, columns keep 2 for the rows, and the result is an eighth of the sums.
func inverse(block *[64]int32) {
	for x := range 8 {
		line(block[x:], 8, 13-2)
	}
	for y := range 8 {
		line(block[8*y:], 1, 13+2+3)
	}
}

// line transforms eight values that stand step apart, and drops bits of their fraction.
func line(v []int32, step int, drop uint) {
	at := func(i int) int32 { return v[i*step] }
	// Coefficients 2 and 6, rotated by 6π/16, with 0 and 4.
	r := (at(2) + at(6)) * 4433
	c2, c6 := r+at(2)*6270, r-at(6)*15137
	sum, diff := (at(0)+at(4))<<13, (at(0)-at(4))<<13
	even := [4]int32{sum + c2, diff + c6, diff - c6, sum - c2}
	// The odd ones.
	a, b, c, d := at(7), at(5), at(3), at(1)
	all := (a + b + c + d) * 9633
	ad, bc := -(a+d)*7373, -(b+c)*20995
	ac, bd := all-(a+c)*16069, all-(b+d)*3196
	odd := [4]int32{d*12299 + ad + bd, c*25172 + bc + ac, b*16819 + bc + bd, a*2446 + ad + ac}
	round := int32(1) << (drop - 1)
	for i := range 4 {
		v[i*step] = (even[i] + odd[i] + round) >> drop
		v[(7-i)*step] = (even[i] - odd[i] + round) >> drop
	}
}
