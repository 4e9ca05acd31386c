package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// MaxNesting limits the depth of nested graphs. Other readers allow 100 nested messages, which is
	// 33 graphs.
	MaxNesting = 32
	// maxRecords limits the number of messages in a model (nodes, attributes, tensors, dimensions,
	// ...). Each takes at least two bytes in the file and about two hundred in memory.
	maxRecords = 1 << 22
)

// decoder is the state shared by the scans of one file. The first error stops them all.
type decoder struct {
	err  error
	left int // records allowed from here on
}

// scan iterates over the fields of one message. After next returns true, the field is in num, typ, and
// u (numbers) or data (bytes, strings, messages).
type scan struct {
	d     *decoder
	up    *scan
	name  string // the field of up that contains this message
	index int    // its index in a repeated field, or -1
	// graphs counts the graphs that the message is in.
	graphs int
	b      []byte
	base   int64 // position of b in the file
	pos    int

	codec codec // of the message
	num   protowire.Number
	typ   protowire.Type
	u     uint64
	data  []byte
	start int // start of the field's tag in b
	at    int // start of the field's payload in b
}

// next advances to the next field and reports whether there is one.
func (s *scan) next() bool {
	if s.d.err != nil || s.pos >= len(s.b) {
		return false
	}
	s.start, s.u, s.data = s.pos, 0, nil
	num, typ, n := protowire.ConsumeTag(s.b[s.pos:])
	if n < 0 {
		return s.broken("field tag", n)
	}
	s.num, s.typ, s.pos = num, typ, s.pos+n
	s.at = s.pos
	rest := s.b[s.pos:]
	switch typ {
	case protowire.VarintType:
		s.u, n = protowire.ConsumeVarint(rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(rest)
		s.u = uint64(v)
	case protowire.Fixed64Type:
		s.u, n = protowire.ConsumeFixed64(rest)
	case protowire.BytesType:
		size, k := protowire.ConsumeVarint(rest)
		if k < 0 {
			return s.broken(fmt.Sprintf("length of field %d", num), k)
		}
		if left := uint64(len(rest) - k); size > left {
			return s.fail("cut short: field %d needs %d bytes, %d are left", num, size, left)
		}
		s.at += k
		n = k + int(size)
		s.data = s.b[s.at : s.pos+n : s.pos+n]
	default:
		n = protowire.ConsumeFieldValue(num, typ, rest)
	}
	if n < 0 {
		return s.broken(fmt.Sprintf("field %d", num), n)
	}
	s.pos += n
	return true
}

// fail stops decoding with a FormatError at the current field.
func (s *scan) fail(format string, args ...any) bool {
	if s.d.err == nil {
		s.d.err = &FormatError{Offset: s.base + int64(s.start), Field: s.path(), Reason: fmt.Sprintf(format, args...)}
	}
	return false
}

// refuse stops decoding with an UnsupportedError at the current field.
func (s *scan) refuse(reason string) {
	if s.d.err == nil {
		s.d.err = &UnsupportedError{Offset: s.base + int64(s.start), Field: s.path(), Reason: reason}
	}
}

func (s *scan) broken(what string, code int) bool {
	if errors.Is(protowire.ParseError(code), io.ErrUnexpectedEOF) {
		return s.fail("cut short in %s", what)
	}
	return s.fail("broken %s", what)
}

// path returns the position of s in the model.
func (s *scan) path() string {
	if s.up == nil {
		return ""
	}
	p := s.name
	if s.index >= 0 {
		p = fmt.Sprintf("%s[%d]", s.name, s.index)
	}
	if up := s.up.path(); up != "" {
		p = up + "." + p
	}
	return p
}

func (s *scan) want(typ protowire.Type) bool {
	if s.typ != typ {
		return s.fail("field %d has wire type %d, not %d", s.num, s.typ, typ)
	}
	return true
}

// enter returns a scan of the message in the current field. After an error the scan is empty.
func (s *scan) enter(name string, index int) *scan {
	s.want(protowire.BytesType)
	if s.d.left--; s.d.left < 0 {
		s.fail("too many records in one model")
	}
	return &scan{d: s.d, up: s, name: name, index: index, graphs: s.graphs, b: s.data, base: s.base + int64(s.at)}
}

// bytes returns the payload, a part of the file.
func (s *scan) bytes() []byte {
	s.want(protowire.BytesType)
	return s.data
}

func (s *scan) text() string { return string(s.bytes()) }

func (s *scan) int() int64 {
	s.want(protowire.VarintType)
	return int64(s.u)
}

func (s *scan) float() float32 {
	s.want(protowire.Fixed32Type)
	return math.Float32frombits(uint32(s.u))
}

// ints appends the numbers of a packed or unpacked varint field.
func (s *scan) ints(list []int64) []int64 {
	if s.typ != protowire.BytesType {
		return append(list, s.int())
	}
	s.varints(func(v uint64) { list = append(list, int64(v)) })
	return list
}

// floats appends the numbers of a packed or unpacked float field.
func (s *scan) floats(list []float32) []float32 {
	if s.typ != protowire.BytesType {
		return append(list, s.float())
	}
	if len(s.data)%4 != 0 {
		s.fail("field %d has %d bytes, not a multiple of 4", s.num, len(s.data))
	}
	for b := s.data; len(b) >= 4; b = b[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return list
}

// varints calls f for every number of a packed field.
func (s *scan) varints(f func(uint64)) {
	for b := s.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			s.broken(fmt.Sprintf("packed field %d", s.num), n)
			return
		}
		f(v)
		b = b[n:]
	}
}
