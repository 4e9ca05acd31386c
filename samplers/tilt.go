package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

// Reading a proposal off the energy's own softmax p = softmax(½β·g) instead of
// the gradient saves an exponential per value. What is drawn from is the float32
// row as it stands, with p_cur raised to smallestTilt where it underflowed; sums
// are float64 in an order that depends on the row and its current value alone.
// One pass sums blocks of a row; a draw searches the sums and scans one block.

// blocks returns the number of blocks of a row.
func blocks(values int) int { return (values + blockLen - 1) / blockLen }

// sumTilt fills block and rest for the rows (chain, site) in [lo, hi) from Tilt.
func (l *Local) sumTilt(x energies.Batch, lo, hi int) {
	values := x.Space.Values
	nb := blocks(values)
	for r := lo; r < hi; r++ {
		p, cur := l.Tilt[r*values:(r+1)*values], int(x.Codes[r])
		sums := l.block[r*nb : (r+1)*nb]
		total := 0.0
		for b := range sums {
			from, to := b*blockLen, min((b+1)*blockLen, values)
			if from <= cur && cur < to {
				// Leaving p_cur out, rather than subtracting it afterwards, keeps
				// the others' sum right when p_cur is nearly one.
				sums[b] = sum(p[from:cur]) + sum(p[cur+1:to])
			} else {
				sums[b] = sum(p[from:to])
			}
			total += sums[b]
		}
		l.rest[r] = math.Log(total) - math.Log(float64(max(p[cur], smallestTilt)))
	}
}

// sum adds p in float64. Four sums in turn hide the latency of the addition.
func sum(p []float32) float64 {
	var a, b, c, d float64
	for len(p) >= 4 {
		a += float64(p[0])
		b += float64(p[1])
		c += float64(p[2])
		d += float64(p[3])
		p = p[4:]
	}
	for _, x := range p {
		a += float64(x)
	}
	return (a + b) + (c + d)
}

// pickTilt is pick on a row of Tilt.
func (l *Local) pickTilt(values, r int, cur int32, u float64) int32 {
	nb := blocks(values)
	sums := l.block[r*nb : (r+1)*nb]
	total := 0.0
	for _, s := range sums {
		total += s
	}
	target, at := u*total, 0
	for b, s := range sums {
		if s == 0 {
			continue
		}
		at = b
		if target < s {
			break
		}
		target -= s // running past the end by rounding leaves the last block
	}
	p := l.Tilt[r*values : (r+1)*values]
	last := cur
	for v := at * blockLen; v < min((at+1)*blockLen, values); v++ {
		if p[v] == 0 || int32(v) == cur {
			continue
		}
		last = int32(v)
		if target -= float64(p[v]); target < 0 {
			break
		}
	}
	return last
}
