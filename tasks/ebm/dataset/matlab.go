package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// Types of the elements of a MATLAB file of version 5, and the bytes of a number of each.
const (
	matlabMatrix     = 14
	matlabCompressed = 15
)

var matlabSize = map[uint32]int{1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}

// maxMatlab bounds the bytes of a file once decompressed.
const maxMatlab = 8 * maxNumbers

// readMatlab reads an array of a MATLAB file of versions 5 to 7.2: a header of 128 bytes
// and a list of elements, most of them compressed. Numbers lie column by column. A row of
// the data is a column of the array where that has as many numbers as there are sites
// (Omniglot's chardata.mat), else a row (Caltech 101 Silhouettes).
func readMatlab(path, array string, sites int) ([]float64, float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, bad(path, "%v", err)
	}
	if len(raw) < 128 || !strings.HasPrefix(string(raw), "MATLAB 5.0") {
		return nil, 0, bad(path, "is not a MATLAB file of versions 5 to 7.2; save it with -v7")
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(raw[126:128]) == "MI" {
		order = binary.BigEndian
	}
	found, names, err := findMatlab(raw[128:], order, array)
	switch {
	case err != nil:
		return nil, 0, bad(path, "damaged file: %v", err)
	case found == nil && array == "":
		return nil, 0, bad(path, "has the arrays %s; name one as %s:ARRAY", strings.Join(names, ", "), path)
	case found == nil:
		return nil, 0, bad(path, "has no array %q; it has %s", array, strings.Join(names, ", "))
	}
	return found.rows(path, sites)
}

// matlabArray is an array with its numbers column by column.
type matlabArray struct {
	name    string
	dims    []int
	numbers []float64
}

// rows returns the numbers row by row.
func (a *matlabArray) rows(path string, sites int) ([]float64, float64, error) {
	if len(a.dims) != 2 || a.numbers == nil {
		return nil, 0, bad(path, "array %q is not a matrix of real numbers", a.name)
	}
	highest := 1.0
	if len(a.numbers) > 0 && slices.Max(a.numbers) > 1 {
		highest = 255
	}
	if a.dims[0] == sites {
		return a.numbers, highest, nil
	}
	out := make([]float64, len(a.numbers))
	for k, v := range a.numbers {
		out[k%a.dims[0]*a.dims[1]+k/a.dims[0]] = v
	}
	return out, highest, nil
}

var errMatlabShort = errors.New("it ends within an element")

// findMatlab returns the array of a name among elements, or, for no name, the only array;
// and the names of all.
func findMatlab(b []byte, order binary.ByteOrder, name string) (*matlabArray, []string, error) {
	var found *matlabArray
	var names []string
	for len(b) > 0 {
		kind, body, rest, err := matlabElement(b, order)
		if err != nil {
			return nil, nil, err
		}
		b = rest
		if kind == matlabCompressed {
			if body, err = inflate(body); err != nil {
				return nil, nil, err
			}
			if kind, body, _, err = matlabElement(body, order); err != nil {
				return nil, nil, err
			}
		}
		if kind != matlabMatrix {
			continue
		}
		a, err := parseMatlab(body, order)
		if err != nil {
			return nil, nil, err
		}
		if names = append(names, a.name); a.name == name || name == "" {
			found = a
		}
	}
	if name == "" && len(names) != 1 {
		found = nil
	}
	return found, names, nil
}

func inflate(b []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, maxMatlab+1))
	if err == nil && len(out) > maxMatlab {
		err = fmt.Errorf("an array has more than %d bytes", maxMatlab)
	}
	return out, err
}

// matlabElement splits off the first element: its type and size in two words, or, for up
// to four bytes, in the halves of one, and its content, padded to eight bytes unless it is
// compressed.
func matlabElement(b []byte, order binary.ByteOrder) (kind uint32, body, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, nil, errMatlabShort
	}
	kind = order.Uint32(b)
	if size := int(kind >> 16); size > 0 {
		if size > 4 {
			return 0, nil, nil, fmt.Errorf("a small element has %d bytes", size)
		}
		return kind & 0xffff, b[4 : 4+size], b[8:], nil
	}
	size := uint64(order.Uint32(b[4:]))
	padded := size
	if kind != matlabCompressed {
		padded = (size + 7) / 8 * 8
	}
	b = b[8:]
	if size > uint64(len(b)) {
		return 0, nil, nil, errMatlabShort
	}
	return kind, b[:size], b[min(padded, uint64(len(b))):], nil
}

// parseMatlab reads an array: flags, sizes, name and, for real numbers, their values.
func parseMatlab(b []byte, order binary.ByteOrder) (*matlabArray, error) {
	var parts [3][]byte
	for i := range parts {
		var err error
		if _, parts[i], b, err = matlabElement(b, order); err != nil {
			return nil, err
		}
	}
	if len(parts[0]) < 4 {
		return nil, errMatlabShort
	}
	flags := order.Uint32(parts[0])
	a := &matlabArray{name: string(parts[2])}
	total := 1
	for sizes := parts[1]; len(sizes) >= 4; sizes = sizes[4:] {
		n := int(int32(order.Uint32(sizes)))
		if n < 0 || total > maxNumbers/max(n, 1) {
			return nil, fmt.Errorf("array %q has a size of %d", a.name, n)
		}
		total *= n
		a.dims = append(a.dims, n)
	}
	// Classes 6 to 15 are numbers; bit 11 says that they are complex.
	if class := flags & 0xff; class < 6 || class > 15 || flags&(1<<11) != 0 {
		return a, nil
	}
	kind, data, _, err := matlabElement(b, order)
	if err != nil {
		return nil, err
	}
	size := matlabSize[kind]
	if size == 0 || len(data) != total*size {
		return nil, fmt.Errorf("array %q has %d bytes of type %d for %d numbers", a.name, len(data), kind, total)
	}
	a.numbers = make([]float64, total)
	for i := range a.numbers {
		a.numbers[i] = matlabNumber(kind, data[i*size:], order)
	}
	return a, nil
}

func matlabNumber(kind uint32, b []byte, order binary.ByteOrder) float64 {
	switch kind {
	case 1:
		return float64(int8(b[0]))
	case 2:
		return float64(b[0])
	case 3:
		return float64(int16(order.Uint16(b)))
	case 4:
		return float64(order.Uint16(b))
	case 5:
		return float64(int32(order.Uint32(b)))
	case 6:
		return float64(order.Uint32(b))
	case 7:
		return float64(math.Float32frombits(order.Uint32(b)))
	case 9:
		return math.Float64frombits(order.Uint64(b))
	case 12:
		return float64(int64(order.Uint64(b)))
	}
	return float64(order.Uint64(b))
}
