package neural

import "github.com/gradhop/gradhop/energies"

// Where in a batch a row stands can change its last bits: kernels treat the elements
// that do not fill a vector of four floats otherwise than the rest, and sums of a row
// begin at the next multiple of 16 bytes. So batches are whole blocks of four rows, and
// a chain stands at the row of its block that its number says; it then comes out the
// same, bit for bit, whatever stands beside it, and chains can be run in parts.
const rowBlock = 4

// placement says where the chains of one run of the model stand.
type placement struct {
	at   []int // row, [chain]
	rows int   // in all
}

// element is the index, in units of a site, of element k of the chains' codes.
func (p placement) element(k, sites int) int { return p.at[k/sites]*sites + k%sites }

// place puts as many chains from lo on as fit into one run.
func (e *Model) place(x energies.Batch, lo int) placement {
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
	next := make([]int, block) // free row of each kind
	for k := range next {
		next[k] = k
	}
	for c := lo; c < x.Chains(); c++ {
		kind := (c - lo) % block
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
