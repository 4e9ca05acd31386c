package store

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// WriteNPZ writes the draws as an archive that numpy.load reads: x [chain, draw,
// site], each statistic [chain, draw], chain, the chains' numbers, and of warm-up
// the same with the prefix warmup_. Memory is that of a chunk. Errors are
// *FormatError and *WriteError.
func (r *Reader) WriteNPZ(path string) error {
	return writeWhole(path, func(out io.Writer) error {
		z := zip.NewWriter(out)
		if err := r.npzChains(z); err != nil {
			return err
		}
		for _, v := range r.vars {
			if err := r.npzArray(z, v); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func (r *Reader) npzChains(z *zip.Writer) error {
	w, err := z.Create("chain.npy")
	if err != nil {
		return err
	}
	if _, err := w.Write(npyHead("<i8", r.Chains())); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, r.header.ChainIDs)
}

func (r *Reader) npzArray(z *zip.Writer, v variable) error {
	name := v.name
	shape := []int{r.Chains(), r.draws[v.phase]}
	if v.phase == Warmup {
		name = "warmup_" + name
	}
	if v.sites > 0 {
		shape = append(shape, v.sites)
	}
	w, err := z.Create(name + ".npy")
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if _, err := b.Write(npyHead(v.dtype, shape...)); err != nil {
		return err
	}
	for c := range r.Chains() {
		for row, err := range r.rows(&v, c, 0) {
			if err != nil {
				return err
			}
			if _, err := b.Write(row); err != nil {
				return err
			}
		}
	}
	return b.Flush()
}

// npyHead is the head of an array in format 1.0, padded to 64 bytes.
func npyHead(dtype string, shape ...int) []byte {
	dims := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), ", "), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, dims)
	const fixed = 10 // magic, version, length
	dict += strings.Repeat(" ", 63-(fixed+len(dict))%64) + "\n"
	head := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
	return append(head, dict...)
}
