package samplers

import "math"

// Reading a proposal off the energy's own softmax p = softmax(½β·g) instead of
// the gradient saves an exponential per value. What is drawn from is the float32
// row as it stands, with p_cur raised to smallestTilt where it underflowed; sums
// are float64 in an order that depends on the row and its current value alone.

// smallestTilt replaces the tilt of a current value that underflowed, in
// forward and backward probabilities alike, so that ratios to it stay finite.
const smallestTilt = math.SmallestNonzeroFloat32

// sumTilt returns log Σ w[i,v] over v ≠ cur of row r.
func (p *Point) sumTilt(r int, cur int32) float64 {
	values := p.X.Space.Values
	row := p.Tilt[r*values : (r+1)*values]
	return math.Log(others(row, cur)) - math.Log(float64(max(row[cur], smallestTilt)))
}

// others is the sum of a row without its current value: leaving that out, rather than subtracting it
// afterwards, keeps the sum right when it is nearly one.
func others(row []float32, cur int32) float64 { return sum(row[:cur]) + sum(row[cur+1:]) }

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
	row := p.Tilt[r*values : (r+1)*values]
	target, last := u*others(row, cur), cur
	for v, weight := range row {
		if weight == 0 || int32(v) == cur {
			continue
		}
		last = int32(v)
		if target -= float64(weight); target < 0 {
			break
		}
	}
	return last
}
