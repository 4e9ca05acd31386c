package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
)

// errUnusual says that a JPEG file is damaged or of a kind that this decoder leaves to
// image/jpeg.
var errUnusual = errors.New("not a JPEG file of the usual kind")

// file decodes the coefficients of a JPEG file (ITU-T T.81), baseline or progressive, of
// grey, YCbCr, CMYK or YCCK. It exists since image/jpeg rounds the inverse cosine
// transform in its own way; whatever is unusual or wrong is left to image/jpeg.
type file struct {
	width, height int
	wide, high    int // the sampling factors of luma; those of chroma are 1
	progressive   bool
	adobe         bool          // a segment says what the components are:
	transform     byte          // 0 RGB or CMYK, 1 YCbCr, 2 YCCK
	quant         [4]*[64]int32 // in zigzag order
	tables        [2][4]*huffman
	parts         []*component
	restart       int // MCUs between restart markers
}

// component is a colour component.
type component struct {
	id         byte
	h, v       int // sampling factors
	quant      int
	cols, rows int         // blocks that hold pixels
	stride     int         // blocks in a row, with those that fill up the last MCU
	coef       [][64]int16 // in zigzag order
	dc         int32
}

// Decode returns the content of a JPEG file, *image.Gray, *image.YCbCr or *image.CMYK, as
// libjpeg's accurate integer transform makes it. The error is errUnusual.
func Decode(data []byte) (image.Image, error) {
	f := &file{}
	if err := f.markers(data[2:]); err != nil {
		return nil, err
	}
	return f.image()
}

// Scans counts the scans of a JPEG file up to its end, whatever else is in it. What a
// decoder takes for a marker is one here.
func Scans(data []byte) (n int) {
	for {
		at := bytes.IndexByte(data, 0xff)
		if at < 0 || at+4 > len(data) {
			return n
		}
		data = data[at+1:]
		switch marker := data[0]; {
		case marker == 0xd9: // end of image
			return n
		case marker <= 0x01, marker == 0xff, 0xd0 <= marker && marker <= 0xd8: // of one byte, or none
			continue
		case marker == 0xda:
			n++
		}
		data = data[min(1+int(binary.BigEndian.Uint16(data[1:])), len(data)):]
	}
}

// markers reads segment after segment.
func (f *file) markers(data []byte) error {
	for scans := 0; ; {
		if len(data) < 2 || data[0] != 0xff {
			return errUnusual
		}
		marker := data[1]
		switch {
		case marker == 0xff: // fill
			data = data[1:]
			continue
		case marker == 0xd9: // end of image
			if scans == 0 {
				return errUnusual
			}
			return nil
		case len(data) < 4:
			return errUnusual
		}
		size := int(binary.BigEndian.Uint16(data[2:]))
		if size < 2 || len(data) < 2+size {
			return errUnusual
		}
		segment := data[4 : 2+size]
		data = data[2+size:]
		var err error
		switch marker {
		case 0xc0, 0xc1, 0xc2:
			f.progressive = marker == 0xc2
			err = f.frame(segment)
		case 0xc4:
			err = f.huffmanTables(segment)
		case 0xdb:
			err = f.quantTables(segment)
		case 0xdd:
			if len(segment) != 2 {
				return errUnusual
			}
			f.restart = int(binary.BigEndian.Uint16(segment))
		case 0xda:
			scans++
			if data, err = f.scan(segment, data); err == nil {
				continue
			}
		case 0xee:
			if len(segment) >= 12 && string(segment[:5]) == "Adobe" {
				f.adobe, f.transform = true, segment[11]
			}
		default:
			if marker < 0xe0 || marker > 0xef && marker != 0xfe {
				return errUnusual
			}
		}
		if err != nil {
			return err
		}
	}
}

func (f *file) quantTables(s []byte) error {
	for len(s) > 0 {
		wide, to := int(s[0]>>4), s[0]&15
		if wide > 1 || to > 3 || len(s) < 1+64*(1+wide) {
			return errUnusual
		}
		table := new([64]int32)
		for i := range table {
			if wide == 1 {
				table[i] = int32(binary.BigEndian.Uint16(s[1+2*i:]))
			} else {
				table[i] = int32(s[1+i])
			}
		}
		f.quant[to] = table
		s = s[1+64*(1+wide):]
	}
	return nil
}

// frame reads the frame header and makes room for the coefficients.
func (f *file) frame(s []byte) error {
	if f.parts != nil || len(s) < 6 || s[0] != 8 {
		return errUnusual
	}
	f.height, f.width = int(binary.BigEndian.Uint16(s[1:])), int(binary.BigEndian.Uint16(s[3:]))
	n := int(s[5])
	if f.width == 0 || f.height == 0 || n != 1 && n != 3 && n != 4 || len(s) != 6+3*n {
		return errUnusual
	}
	for i := range n {
		p := s[6+3*i:]
		f.parts = append(f.parts, &component{id: p[0], h: int(p[1] >> 4), v: int(p[1] & 15), quant: int(p[2])})
		if p[2] > 3 {
			return errUnusual
		}
	}
	luma := f.parts[0]
	if n == 1 {
		luma.h, luma.v = 1, 1
	} else if c, d := f.parts[1], f.parts[2]; c.h != 1 || c.v != 1 || d.h != 1 || d.v != 1 {
		return errUnusual
	}
	if n == 4 && (f.parts[3].h != luma.h || f.parts[3].v != luma.v) || n == 3 && luma.id == 'R' {
		return errUnusual
	}
	f.wide, f.high = luma.h, luma.v
	if _, ok := ratios[[2]int{f.wide, f.high}]; !ok {
		return errUnusual
	}
	for _, p := range f.parts {
		across, down := f.mcus()
		p.stride = across * p.h
		p.cols = divUp(divUp(f.width*p.h, f.wide), 8)
		p.rows = divUp(divUp(f.height*p.v, f.high), 8)
		p.coef = make([][64]int16, p.stride*down*p.v)
	}
	return nil
}

// mcus are the numbers of MCUs in a row and in a column.
func (f *file) mcus() (across, down int) {
	return divUp(f.width, 8*f.wide), divUp(f.height, 8*f.high)
}

func divUp(a, b int) int { return (a + b - 1) / b }

// scan reads a scan header and the scan behind it, and returns what follows.
func (f *file) scan(s, data []byte) ([]byte, error) {
	if f.parts == nil || len(s) < 1 || int(s[0]) < 1 || int(s[0]) > len(f.parts) || len(s) != 4+2*int(s[0]) {
		return nil, errUnusual
	}
	c := &scan{bits: bitReader{data: data}, progressive: f.progressive}
	var parts []*component
	var tables [][2]*huffman
	for i := range int(s[0]) {
		id, which := s[1+2*i], s[2+2*i]
		if which>>4 > 3 || which&15 > 3 {
			return nil, errUnusual
		}
		for _, p := range f.parts {
			if p.id == id {
				parts = append(parts, p)
				tables = append(tables, [2]*huffman{f.tables[0][which>>4], f.tables[1][which&15]})
			}
		}
		if len(parts) != i+1 {
			return nil, errUnusual
		}
	}
	tail := s[len(s)-3:]
	c.from, c.to, c.high, c.low = int(tail[0]), int(tail[1]), int(tail[2]>>4), int(tail[2]&15)
	if !f.progressive {
		c.from, c.to, c.high, c.low = 0, 63, 0, 0
	}
	if c.from > c.to || c.to > 63 || c.low > 13 || f.progressive && (c.from == 0) != (c.to == 0) || c.from > 0 && len(parts) > 1 {
		return nil, errUnusual
	}
	for i := range tables {
		if tables[i][0] == nil && c.from == 0 && c.high == 0 || tables[i][1] == nil && c.to > 0 {
			return nil, errUnusual
		}
	}
	across, down := f.mcus()
	if len(parts) == 1 { // without what only fills up MCUs
		across, down = parts[0].cols, parts[0].rows
	}
	for mcu := range across * down {
		if f.restart > 0 && mcu > 0 && mcu%f.restart == 0 {
			if !c.bits.restart(mcu/f.restart - 1) {
				return nil, errUnusual
			}
			c.run = 0
		}
		if mcu == 0 || f.restart > 0 && mcu%f.restart == 0 {
			for _, p := range parts {
				p.dc = 0
			}
		}
		x, y := mcu%across, mcu/across
		for i, p := range parts {
			h, v := p.h, p.v
			if len(parts) == 1 {
				h, v = 1, 1
			}
			for j := range h * v {
				block := &p.coef[(y*v+j/h)*p.stride+x*h+j%h]
				if !c.block(p, block, tables[i]) {
					return nil, errUnusual
				}
			}
		}
	}
	return c.bits.data, nil
}
