package zarr

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// level is the compression level. It is part of the format, since runs are compared byte by byte.
const level = 1

// sumBytes is the size of the checksum before a chunk.
const sumBytes = 4

// Encoder encodes chunks. It reuses its buffers. The zero value is ready to use.
type Encoder struct {
	out bytes.Buffer
	z   *zlib.Writer
	pad []byte
}

// Encode returns the file of a chunk that holds rows, padded with zeros to size bytes. The result is
// valid until the next call.
func (e *Encoder) Encode(rows []byte, size int) []byte {
	e.out.Reset()
	_, _ = e.out.Write(make([]byte, sumBytes)) // writing to a buffer cannot fail
	if e.z == nil {
		e.z, _ = zlib.NewWriterLevel(&e.out, level) // the level is valid
	} else {
		e.z.Reset(&e.out)
	}
	_, _ = e.z.Write(rows)
	if missing := size - len(rows); missing > 0 {
		if len(e.pad) < missing {
			e.pad = make([]byte, missing)
		}
		_, _ = e.z.Write(e.pad[:missing])
	}
	_ = e.z.Close()
	file := e.out.Bytes()
	binary.LittleEndian.PutUint32(file, crc32.ChecksumIEEE(file[sumBytes:]))
	return file
}

// Intact returns an error if the checksum of a chunk's file does not match.
func Intact(file []byte) error {
	switch {
	case len(file) == 0:
		return errors.New("the file is empty")
	case len(file) < sumBytes || binary.LittleEndian.Uint32(file) != crc32.ChecksumIEEE(file[sumBytes:]):
		return errors.New("checksum mismatch")
	}
	return nil
}

// Decoder decodes chunks. It reuses its buffers. The zero value is ready to use.
type Decoder struct {
	z   io.ReadCloser
	raw []byte
}

// Decode verifies the file of a chunk of size bytes and returns its contents, valid until the next
// call.
func (d *Decoder) Decode(file []byte, size int) ([]byte, error) {
	err := Intact(file)
	if err != nil {
		return nil, err
	}
	in := bytes.NewReader(file[sumBytes:])
	if d.z == nil {
		d.z, err = zlib.NewReader(in)
	} else {
		err = d.z.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return nil, err
	}
	if cap(d.raw) <= size {
		d.raw = make([]byte, size+1)
	}
	// Read one more byte to reach the end of the stream and zlib's own checksum.
	n, err := io.ReadFull(d.z, d.raw[:size+1])
	switch {
	case err == nil:
		return nil, fmt.Errorf("it holds more than %d bytes", size)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n < size:
		return nil, fmt.Errorf("it holds %d of %d bytes", n, size)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	}
	return d.raw[:size], nil
}
