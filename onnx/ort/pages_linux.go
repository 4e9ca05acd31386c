package ort

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// largePages asks the kernel to put what fills memory by the megabyte on pages of 2 MB,
// which it otherwise does on request alone. The weights of a model are read from end to
// end in every run, and for few rows that is what a run waits for: twice as fast from
// large pages, as measured for a plain sum. It is advice: nothing is lost where the kernel
// does not take it.
func largePages() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	all := make([]region, 0, 1000)
	heap := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		all = readRegion(all, lines.Text())
	}
	for _, r := range all {
		if !r.worthwhile(heap) {
			continue
		}
		if _, _, e := syscall.Syscall(syscall.SYS_MADVISE, r.from, r.to-r.from, syscall.MADV_HUGEPAGE); e != 0 {
			continue // it is gone, or the kernel has none
		}
		syscall.Syscall(syscall.SYS_MADVISE, r.from, r.to-r.from, madvCollapse)
	}
}

// madvCollapse moves what is there at once, from Linux 6.1 on; older kernels do it in
// their own time.
const madvCollapse = 25

// region is a range of addresses of the process.
type region struct {
	from, to         uintptr
	private          bool // readable and writable memory of no file
	resident, onHuge uintptr
}

// readRegion adds a line of smaps to what is known.
func readRegion(all []region, line string) []region {
	var r region
	var access string
	if n, _ := fmt.Sscanf(line, "%x-%x %s", &r.from, &r.to, &access); n == 3 {
		fields := strings.Fields(line)
		r.private = access == "rw-p" && (len(fields) == 5 || fields[5] == "[heap]")
		return append(all, r)
	}
	if len(all) == 0 {
		return all
	}
	last := &all[len(all)-1]
	var size uintptr
	if n, _ := fmt.Sscanf(line, "Rss: %d kB", &size); n == 1 {
		last.resident = size << 10
	} else if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &size); n == 1 {
		last.onHuge = size << 10
	}
	return all
}

// worthwhile tells memory that is in use throughout from room for more, such as the stacks
// of threads. Go's own heap, which lies at a place of its own, is left alone.
func (r region) worthwhile(heap uintptr) bool {
	size := r.to - r.from
	return r.private && r.from>>40 != heap>>40 && size >= large && r.resident > size/8*7 && r.onHuge < size/8*7
}
