package neural

import (
	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/internal/session"
)

// The last bits of a result can depend on the row in the batch: kernels of the runtime treat elements
// that do not fill a vector of four floats differently, and the sum over a row starts at the next
// multiple of 16 bytes. So a batch is padded to a multiple of four rows, and the number of a chain
// determines its row modulo four. Results then do not depend on batch composition, to the bit, and a
// run split into parts gives the same draws.
const rowBlock = session.RowBlock

// placement assigns chains to rows in one run of the model.
type placement struct {
	at   []int // row of each chain, [chain]
	rows int   // total number of rows
}

// element returns the index in [row, site] of element k of [chain, site].
func (p placement) element(k, sites int) int { return p.at[k/sites]*sites + k%sites }

// place assigns rows to the first chains, as many as fit into one run.
func (e *Model) place(x energies.Batch) placement {
	block, capacity := rowBlock, e.layout.batch
	if e.alone {
		return placement{at: []int{0}, rows: max(1, capacity)}
	}
	if capacity > 0 {
		block = min(block, capacity)
	} else if e.opts.MaxBatch > 0 {
		capacity = (e.opts.MaxBatch + block - 1) / block * block
	}
	var p placement
	next := make([]int, block) // next free row modulo block
	for k := range next {
		next[k] = k
	}
	for c := range x.Chains() {
		kind := c % block
		if x.IDs != nil {
			kind = int(x.IDs[c] % int64(block))
		}
		if capacity > 0 && next[kind] >= capacity {
			break
		}
		p.at = append(p.at, next[kind])
		p.rows = max(p.rows, next[kind]/block*block+block)
		next[kind] += block
	}
	if e.layout.batch > 0 {
		p.rows = e.layout.batch
	}
	return p
}
