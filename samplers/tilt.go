package samplers

import "math"

// Reading a proposal off the energy's own softmax p = softmax(½β·g) instead of
// the gradient saves an exponential per value. What is drawn from is the float32
// row as it stands, with p_cur raised to smallestTilt where it underflowed; sums
// are float64 in an order that depends on the row and its current value alone.
// One pass sums blocks of a row; a draw searches the sums and scans one block.

// blockLen is the number of values whose tilt is summed before a draw looks
// closer: short enough to scan, long enough that few sums are kept.
const blockLen = 256

// blocks returns the number of blocks of a row.
func blocks(values int) int { return (values + blockLen - 1) / blockLen }

// sumTilt fills the block sums of row r and returns log Σ w[i,v] over v ≠ cur.
func (p *Point) sumTilt(r int, cur int32) float64 {
	values := p.X.Space.Values
	nb, at := blocks(values), int(cur)
	row, sums := p.Tilt[r*values:(r+1)*values], p.block[r*nb:(r+1)*nb]
	total := 0.0
	for b := range sums {
		from, to := b*blockLen, min((b+1)*blockLen, values)
		if from <= at && at < to {
			// Leaving p_cur out, rather than subtracting it afterwards, keeps
			// the others' sum right when p_cur is nearly one.
			sums[b] = sum(row[from:at]) + sum(row[at+1:to])
		} else {
			sums[b] = sum(row[from:to])
		}
		total += sums[b]
	}
	return math.Log(total) - math.Log(float64(max(row[cur], smallestTilt)))
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

// pickTilt is Pick on row r of Tilt.
func (p *Point) pickTilt(r int, cur int32, u float64) int32 {
	values := p.X.Space.Values
	nb := blocks(values)
	sums := p.block[r*nb : (r+1)*nb]
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
	row := p.Tilt[r*values : (r+1)*values]
	last := cur
	for v := at * blockLen; v < min((at+1)*blockLen, values); v++ {
		if row[v] == 0 || int32(v) == cur {
			continue
		}
		last = int32(v)
		if target -= float64(row[v]); target < 0 {
			break
		}
	}
	return last
}
