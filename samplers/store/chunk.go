package store

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// slot is a draw of all chains on its way to the disk.
type slot struct {
	phase  Phase
	codes  []int32 // [chain, site]; empty where states are not kept
	u      []float64
	accept []float64
	hops   []int32
	step   []float64 // empty where the sampler has no step size
	weight []float64 // empty where draws count the same
}

// line maps codes to what they stand for: scale·code + offset.
type line struct{ scale, offset int32 }

func (s Space) line() line {
	lo, hi := s.bounds()
	if s.Kind == "spin" {
		return line{int32(hi - lo), int32(lo)}
	}
	return line{1, int32(lo)}
}

// appendCodes appends a chain's codes as numbers of the given size.
func (l line) appendCodes(b []byte, codes []int32, size int) []byte {
	switch size {
	case 1:
		for _, c := range codes {
			b = append(b, byte(l.scale*c+l.offset))
		}
	case 2:
		for _, c := range codes {
			b = binary.LittleEndian.AppendUint16(b, uint16(l.scale*c+l.offset))
		}
	default:
		for _, c := range codes {
			b = binary.LittleEndian.AppendUint32(b, uint32(l.scale*c+l.offset))
		}
	}
	return b
}

// appendRow appends what a draw has of variable v for a chain.
func (s *slot) appendRow(b []byte, v variable, l line, chain int) []byte {
	switch v.name {
	case lpName:
		return appendFloat(b, s.u[chain])
	case acceptName:
		return appendFloat(b, s.accept[chain])
	case stepSizeName:
		return appendFloat(b, s.step[chain])
	case weightName:
		return appendFloat(b, s.weight[chain])
	case hopsName:
		return binary.LittleEndian.AppendUint32(b, uint32(s.hops[chain]))
	}
	return l.appendCodes(b, s.codes[chain*v.sites:(chain+1)*v.sites], v.size)
}

func appendFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// packer compresses chunks. Its memory is used again.
type packer struct {
	out bytes.Buffer
	z   *zlib.Writer
	pad []byte
}

// pack compresses rows, followed by zeros up to a size. The result is valid up
// to the next call.
func (p *packer) pack(rows []byte, size int) []byte {
	p.out.Reset()
	if p.z == nil {
		p.z, _ = zlib.NewWriterLevel(&p.out, zlibLevel) // the level is a valid one
	} else {
		p.z.Reset(&p.out)
	}
	_, _ = p.z.Write(rows) // a buffer takes everything
	if missing := size - len(rows); missing > 0 {
		if len(p.pad) < missing {
			p.pad = make([]byte, missing)
		}
		_, _ = p.z.Write(p.pad[:missing])
	}
	_ = p.z.Close()
	return p.out.Bytes()
}

// unpacker reads chunks. Its memory is used again.
type unpacker struct {
	z   io.ReadCloser
	raw []byte
}

// read returns the first n bytes of a chunk's contents, valid up to the next
// call. Errors are *FormatError.
func (u *unpacker) read(dir, path string, n int) ([]byte, error) {
	full := filepath.Join(dir, path)
	f, err := os.Open(full)
	if err != nil {
		return nil, &FormatError{full, "a chunk cannot be read", err}
	}
	defer f.Close()
	if u.z == nil {
		u.z, err = zlib.NewReader(f)
	} else {
		err = u.z.(zlib.Resetter).Reset(f, nil)
	}
	if err != nil {
		return nil, &FormatError{full, "a damaged chunk", err}
	}
	if cap(u.raw) < n {
		u.raw = make([]byte, n)
	}
	if k, err := io.ReadFull(u.z, u.raw[:n]); err != nil {
		return nil, &FormatError{full, fmt.Sprintf("a damaged chunk: %d of %d bytes", k, n), err}
	}
	return u.raw[:n], nil
}
