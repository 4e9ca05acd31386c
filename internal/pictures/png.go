package pictures

import (
	"bytes"
	"encoding/binary"
	"image"
	pngs "image/png"
	"io"
	"math"
)

// pngConfig is png.DecodeConfig without overflow errors for huge sizes: such an image is too large, not
// damaged or unsupported.
func pngConfig(r io.Reader) (image.Config, error) {
	var head [24]byte // signature, length and name of the first chunk, width, height
	n, _ := io.ReadFull(r, head[:])
	c, err := pngs.DecodeConfig(io.MultiReader(bytes.NewReader(head[:n]), r))
	if err == nil || n < len(head) || string(head[12:16]) != "IHDR" {
		return c, err
	}
	w, h := uint64(binary.BigEndian.Uint32(head[16:])), uint64(binary.BigEndian.Uint32(head[20:]))
	if w == 0 || h == 0 || max(w, h) <= math.MaxInt32 && w*h < 1<<60 {
		return c, err
	}
	return image.Config{Width: int(w), Height: int(h)}, nil
}
