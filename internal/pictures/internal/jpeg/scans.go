package jpeg

import (
	"bytes"
	"encoding/binary"
)

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
