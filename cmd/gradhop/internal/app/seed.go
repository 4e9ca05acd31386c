package app

import (
	"crypto/rand"
	"encoding/binary"
)

// RandomSeed returns a seed for a run that was given none. It is short enough to be typed
// again.
func RandomSeed() uint64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return uint64(binary.LittleEndian.Uint32(b[:]))
}
