package pictures

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	gifs "image/gif"
	jpegs "image/jpeg"
	pngs "image/png"
	"io"
	"os"

	webps "golang.org/x/image/webp"

	jpegdec "github.com/gradhop/gradhop/internal/pictures/internal/jpeg"
	webpdec "github.com/gradhop/gradhop/internal/pictures/internal/webp"
)

// Picture is an upright, opaque RGB image.
type Picture struct {
	Width, Height int // both at least 1
	// Pix holds 3·Width·Height bytes: rows from the top, pixels from the left, each red, green, blue.
	Pix []byte
}

// newPicture returns a black picture.
func newPicture(width, height int) *Picture {
	return &Picture{Width: width, Height: height, Pix: make([]byte, 3*width*height)}
}

// Limits are the maximum sizes of images. Zero fields mean the defaults.
type Limits struct {
	// Pixels is the maximum number of pixels, checked before decoding. Decoding takes 5 to 25 bytes per
	// pixel. The default is 64 Mi (8192 x 8192).
	Pixels int64
	// Bytes is the maximum size of a file, which is read into memory. The default is 256 Mi.
	Bytes int64
}

// fill replaces zero fields by the defaults.
func (l Limits) fill() Limits {
	if l.Pixels <= 0 {
		l.Pixels = 64 << 20
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	return l
}

// Sum is the SHA-256 of a file. It identifies an image.
type Sum [sha256.Size]byte

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// readLimited returns the content of an image file and its Sum. Errors are *Error.
func readLimited(path string, limits Limits) ([]byte, Sum, error) {
	limits = limits.fill()
	// Opening a pipe would block.
	if st, err := os.Stat(path); err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		return nil, Sum{}, unreadable(path, errors.New("not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Sum{}, unreadable(path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, Sum{}, unreadable(path, err)
	}
	if !st.IsDir() && st.Size() > limits.Bytes {
		return nil, Sum{}, &Error{File: path, Problem: kindTooLarge, Detail: fmt.Sprintf("%d bytes, the limit is %d", st.Size(), limits.Bytes)}
	}
	data := bytes.NewBuffer(make([]byte, 0, min(st.Size(), limits.Bytes)+bytes.MinRead))
	if _, err := io.Copy(data, io.LimitReader(f, limits.Bytes)); err != nil {
		return nil, Sum{}, unreadable(path, err)
	}
	return data.Bytes(), sha256.Sum256(data.Bytes()), nil
}

// Decode reads an image file. Errors are *Error.
func Decode(path string, limits Limits) (*Picture, error) {
	data, _, err := readLimited(path, limits)
	if err != nil {
		return nil, err
	}
	return decodeAs(path, data, limits)
}

// decodeAs is [Decode] for the contents of a file; errors refer to it by name.
func decodeAs(name string, data []byte, limits Limits) (*Picture, error) {
	return decodeBytes(name, data, limits, func(int64) error { return nil })
}

// decodeBytes is DecodeBytes, but calls enter with the number of pixels before decoding. An error of
// enter is returned unchanged.
func decodeBytes(name string, data []byte, limits Limits, enter func(pixels int64) error) (*Picture, error) {
	format := formatOf(data)
	dec, ok := decoders[format]
	switch {
	case format == "":
		detail := "not a picture"
		if len(data) == 0 {
			detail = "the file is empty"
		}
		return nil, &Error{File: name, Problem: kindNotPicture, Detail: detail}
	case !ok:
		return nil, unsupportedFormat(name, format, nil)
	}
	var outside error
	p, err := dec.decode(data, limits.fill().Pixels, func(pixels int64) error {
		outside = enter(pixels)
		return outside
	})
	if outside != nil {
		return nil, outside
	}
	if err == nil {
		return p.turn(orientation(format, data)), nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.File = name
		return nil, e
	}
	if dec.lacks(err) {
		return nil, unsupportedFormat(name, format, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || !complete(format, data) {
		return nil, &Error{File: name, Problem: kindTruncated, Detail: fmt.Sprintf("the %s file is cut off", format), Err: err}
	}
	return nil, &Error{File: name, Problem: kindDamaged, Detail: fmt.Sprintf("the %s file is damaged: %v", format, err), Err: err}
}

// decoder reads one format.
type decoder struct {
	config func(io.Reader) (image.Config, error)
	image  func(data []byte, config image.Config) (*Picture, error)
	lacks  func(error) bool // reports whether an error means that the decoder lacks a feature
}

var decoders = map[string]decoder{
	png: {
		config: pngConfig,
		image: func(data []byte, _ image.Config) (*Picture, error) {
			m, err := pngs.Decode(bytes.NewReader(data))
			return convert(m, err, nil)
		},
		lacks: is[pngs.UnsupportedError],
	},
	jpeg: {
		config: jpegs.DecodeConfig,
		image: func(data []byte, c image.Config) (*Picture, error) {
			if err := checkScans(jpegdec.Scans(data), c); err != nil {
				return nil, err
			}
			m, err := jpegs.Decode(bytes.NewReader(data))
			return convert(m, err, jpegdec.Chroma)
		},
		lacks: is[jpegs.UnsupportedError],
	},
	gif: {
		config: gifs.DecodeConfig,
		image: func(data []byte, c image.Config) (*Picture, error) {
			m, err := gifs.Decode(bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			return onCanvas(m, c.Width, c.Height), nil
		},
		lacks: func(error) bool { return false },
	},
	webp: {
		config: webps.DecodeConfig,
		image: func(data []byte, c image.Config) (*Picture, error) {
			m, at, err := webpdec.Decode(data, c)
			p, err := convert(m, err, webpdec.Chroma)
			if err != nil || p.Width == c.Width && p.Height == c.Height {
				return p, err
			}
			return p.onWhite(c.Width, c.Height, at), nil
		},
		lacks: func(error) bool { return false },
	},
}

// mostScanned limits scans times pixels of a JPEG file: each scan visits all blocks, although it may be
// only a few bytes long. Encoders write about ten scans.
const mostScanned = 1 << 30

// checkScans rejects a file that would take long to decode.
func checkScans(scans int, c image.Config) error {
	if int64(scans) <= mostScanned/(int64(c.Width)*int64(c.Height)) && scans <= 256 {
		return nil
	}
	return jpegs.UnsupportedError(fmt.Sprintf("%d scans of %d x %d pixels", scans, c.Width, c.Height))
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// decode decodes an image of at most limit pixels, if enter permits it. A panic of a decoder is
// returned as an error, so that it affects only one image.
func (d decoder) decode(data []byte, limit int64, enter func(pixels int64) error) (p *Picture, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the decoder failed: %v", r)
		}
	}()
	c, err := d.config(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if c.Width <= 0 || c.Height <= 0 {
		return nil, errors.New("the picture has no pixels")
	}
	if int64(c.Width) > limit/int64(c.Height) {
		return nil, &Error{Problem: kindTooLarge, Detail: fmt.Sprintf("%d x %d pixels, the limit is %d pixels", c.Width, c.Height, limit)}
	}
	if err := enter(int64(c.Width) * int64(c.Height)); err != nil {
		return nil, err
	}
	return d.image(data, c)
}
