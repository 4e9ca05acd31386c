package sample

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/energies"
)

// mostChains is the maximum number of chains of one process.
const mostChains = 1 << 24

// fits returns an *OptionError if the states and gradients of a run exceed the memory of the machine.
// It is called before any allocation.
func fits(chains int, s *energies.Space) error {
	// Each chain has at least its codes and two gradients of 4 bytes per value, of the current state
	// and of the proposal. Integer products could overflow.
	need := float64(chains) * (64 + float64(s.Sites)*(16+8*float64(s.Values)))
	have := memory()
	if need <= have {
		return nil
	}
	return &OptionError{"chains", strconv.Itoa(chains), fmt.Sprintf("chains of %d sites with %d values need %s of memory, and this machine has %s; use fewer chains or a smaller space",
		s.Sites, s.Values, gigabytes(need), gigabytes(have))}
}

func gigabytes(n float64) string { return strconv.FormatFloat(n/1e9, 'g', 3, 64) + " GB" }

// memory returns the memory of the machine in bytes, or 64 GiB if unknown.
func memory() float64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 64 << 30
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			if n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64); err == nil {
				return 1024 * n
			}
		}
	}
	return 64 << 30
}
