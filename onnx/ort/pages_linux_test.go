package ort

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRegions: memory of no file that is in use throughout is told from the rest.
func TestRegions(t *testing.T) {
	var all []region
	for line := range strings.Lines(`7f0000000000-7f0004000000 rw-p 00000000 00:00 0
Size:              65536 kB
Rss:               65000 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1004000000 rw-p 00000000 00:00 0                          [heap]
Rss:               60000 kB
AnonHugePages:     20000 kB
7f2000000000-7f2004000000 rw-p 00000000 00:00 0                          [stack]
Rss:               65000 kB
7f3000000000-7f3004000000 rw-p 00000000 08:01 1234                       /models/model.onnx
Rss:               65000 kB
7f4000000000-7f4004000000 r--p 00000000 00:00 0
Rss:               65000 kB
7f5000000000-7f5004000000 rw-p 00000000 00:00 0
Rss:                 100 kB
7f6000000000-7f6004000000 rw-p 00000000 00:00 0
Rss:               65000 kB
AnonHugePages:     64000 kB
7f7000000000-7f7000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
00c000000000-00c004000000 rw-p 00000000 00:00 0
Rss:               65000 kB
`) {
		all = readRegion(all, strings.TrimSuffix(line, "\n"))
	}
	var got []uintptr
	for _, r := range all {
		if r.worthwhile(0xc000012340) {
			got = append(got, r.from)
		}
	}
	if want := []uintptr{0x7f0000000000, 0x7f1000000000}; len(all) != 9 || !slices.Equal(got, want) {
		t.Errorf("%d regions, of which %x are worth it; want 9 and %x", len(all), got, want)
	}
	if all := readRegion(nil, "Rss: 12 kB"); len(all) != 0 {
		t.Errorf("a size of nothing: %v", all)
	}
}

// TestLargePages: what is in memory stays, whatever the kernel makes of the advice.
func TestLargePages(t *testing.T) {
	data, err := syscall.Mmap(-1, 0, 24<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(data)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	largePages()
	largePages()
	for i, v := range data {
		if v != byte(i*7>>3) {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
}
