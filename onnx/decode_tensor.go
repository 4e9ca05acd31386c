package onnx

import (
	"encoding/binary"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// typed collects tensor data from fields other than raw_data.
type typed struct {
	field  protowire.Number // field of the data: 4, 5, 7, 10 or 11
	b      []byte           // little-endian numbers as wide as the field
	offset int64            // position of b in the file, or -1
	runs   int
}

func (d *decoder) tensor(s *scan) *Tensor {
	t := &Tensor{Offset: -1}
	data := typed{offset: -1}
	raw, external := false, false
	entries := External{Length: -1}
	for s.next() {
		switch s.num {
		case 1:
			t.Dims = s.ints(t.Dims)
		case 2:
			t.Type = DataType(s.int32())
		case 3:
			s.refuse("tensors in segments are not supported")
		case 4, 5, 7, 10, 11:
			data.add(s)
		case 6:
			t.Strings = append(t.Strings, s.bytes())
		case 8:
			t.Name = s.text()
		case 9:
			raw, t.Raw, t.Offset = true, s.bytes(), s.base+int64(s.at)
		case 12:
			t.Doc = s.text()
		case 13:
			d.external(s.enter("external_data", -1), &entries)
		case 14:
			external = s.int() == 1
		case 16:
			s.bytes()
			s.keep(&t.Other)
		}
	}
	switch {
	case d.err != nil:
	case t.Type == Undefined:
		s.fail("tensor %q has no element type", t.Name)
	case external && entries.Location == "":
		s.fail("tensor %q has external data without a file name", t.Name)
	case external:
		t.External, t.Raw, t.Strings, t.Offset = &entries, nil, nil, -1
	case t.Type == String:
		t.Raw, t.Offset = nil, -1
	case raw && len(data.b) > 0:
		s.fail("tensor %q has its data twice", t.Name)
	case !raw:
		data.store(s, t)
	}
	if len(t.Raw) == 0 {
		t.Offset = -1
	}
	return t
}

func (d *decoder) external(s *scan, e *External) {
	key, value := d.entry(s)
	var err error
	switch key {
	case "location":
		e.Location = value
	case "offset":
		e.Offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		e.Length, err = strconv.ParseInt(value, 10, 64)
	case "checksum":
		e.Checksum = value
	}
	if err != nil || e.Offset < 0 || e.Length < -1 {
		s.fail("external data has %s %q", key, value)
	}
}

// add appends the numbers of the current field.
func (x *typed) add(s *scan) {
	if x.field != 0 && x.field != s.num {
		s.fail("a tensor has data in fields %d and %d", x.field, s.num)
		return
	}
	x.field = s.num
	x.runs++
	switch width := dataFields[s.num].width; {
	case s.num == 4 || s.num == 10: // fixed width: a packed run has the format of raw data
		x.addFixed(s, width)
	case s.typ != protowire.BytesType:
		x.put(width, uint64(s.int()))
	default:
		if x.b == nil {
			n := 0
			for _, c := range s.data {
				if c < 0x80 {
					n++
				}
			}
			x.b = make([]byte, 0, n*width)
		}
		s.varints(func(v uint64) { x.put(width, v) })
	}
}

func (x *typed) addFixed(s *scan, width int) {
	switch {
	case s.typ != protowire.BytesType:
		if width == 4 {
			s.want(protowire.Fixed32Type)
		} else {
			s.want(protowire.Fixed64Type)
		}
		x.put(width, s.u)
		x.offset = -1
	case len(s.data)%width != 0:
		s.fail("field %d has %d bytes, not a multiple of %d", s.num, len(s.data), width)
	case x.runs == 1:
		x.b, x.offset = s.data, s.base+int64(s.at)
	default:
		x.b, x.offset = append(x.b, s.data...), -1
	}
}

func (x *typed) put(width int, v uint64) {
	if width == 4 {
		x.b = binary.LittleEndian.AppendUint32(x.b, uint32(v))
	} else {
		x.b = binary.LittleEndian.AppendUint64(x.b, v)
	}
}

// dataFields maps a typed data field to the size of its numbers in bytes and the element types stored
// in it.
var dataFields = map[protowire.Number]struct {
	width int
	types []DataType
}{
	4:  {4, []DataType{Float, Complex64}},
	5:  {4, []DataType{Int32, Int16, Int8, Uint16, Uint8, Bool, Float16, BFloat16}},
	7:  {8, []DataType{Int64}},
	10: {8, []DataType{Double, Complex128}},
	11: {8, []DataType{Uint64, Uint32}},
}

// store sets the data of t, with each number truncated to the element size.
func (x *typed) store(s *scan, t *Tensor) {
	t.Raw, t.Offset = x.b, x.offset
	if x.b == nil {
		t.Raw = []byte{}
		return
	}
	info := dataFields[x.field]
	size := t.Type.Size()
	if x.field == 5 && t.Type > BFloat16 {
		size = 1 // 8-bit types; 4-bit and 2-bit types also use one number a byte
	} else if !slices.Contains(info.types, t.Type) {
		s.fail("tensor %q of type %v has its data in field %d", t.Name, t.Type, x.field)
		return
	}
	if x.field == 4 || x.field == 10 || size == info.width {
		return
	}
	n := len(x.b) / info.width
	for i := range n {
		copy(x.b[i*size:(i+1)*size], x.b[i*info.width:])
	}
	t.Raw = x.b[: n*size : n*size]
}

func (d *decoder) valueInfo(s *scan) *ValueInfo {
	v := &ValueInfo{}
	for s.next() {
		switch s.num {
		case 1:
			v.Name = s.text()
		case 2:
			v.Type = Type{}
			d.typeProto(s.enter("type", -1), &v.Type)
		case 3:
			v.Doc = s.text()
		case 4:
			s.bytes()
			s.keep(&v.Other)
		}
	}
	if v.Name == "" {
		s.fail("a value without a name")
	}
	return v
}

func (d *decoder) typeProto(s *scan, t *Type) {
	other := false
	for s.next() {
		switch s.num {
		case 1:
			d.tensorType(s.enter("tensor_type", -1), t)
		case 6:
			t.Denotation = s.text()
		case 4, 5, 7, 8, 9:
			s.bytes()
			other = true
		}
	}
	if other {
		*t = Type{Other: s.b}
	}
}

func (d *decoder) tensorType(s *scan, t *Type) {
	for s.next() {
		switch s.num {
		case 1:
			t.Elem = DataType(s.int32())
		case 2:
			t.HasShape = true
			for shape := s.enter("shape", -1); shape.next(); {
				if shape.num == 1 {
					t.Shape = append(t.Shape, d.dim(shape.enter("dim", len(t.Shape))))
				}
			}
		}
	}
}

func (d *decoder) dim(s *scan) ShapeDim {
	dim := ShapeDim{Value: -1}
	for s.next() {
		switch s.num {
		case 1:
			dim.Value, dim.Param = max(s.int(), -1), ""
		case 2:
			dim.Value, dim.Param = -1, s.text()
		case 3:
			dim.Denotation = s.text()
		}
	}
	return dim
}
