package samplertest

import (
	"math"
	"testing"
)

// TestBiasFloor: by enumeration, the bias of DULA vanishes with the step size where U is
// linear in each site's one-hot code, and falls to a floor on a network, where first-order
// estimates misjudge even a change of one site.
func TestBiasFloor(t *testing.T) {
	bias := map[string][]float64{}
	for _, p := range Problems(t) {
		if p.Name != "potts spin" && p.Name != "net binary" {
			continue
		}
		d2 := p.Space().SquaredDistance(0, 1)
		for _, alpha := range []float64{0.4, 0.2, 0.1, 0.05} {
			p.Alpha = alpha * d2
			bias[p.Name] = append(bias[p.Name], stationaryBias(p))
		}
		t.Logf("%s: total variation %.4f at step sizes 0.4, 0.2, 0.1 and 0.05 times D²", p.Name, bias[p.Name])
	}
	if b := bias["potts spin"]; !(b[0] > 0.01) || !(b[3] < 0.01*b[0]) {
		t.Errorf("linear in each site: %v does not vanish", b)
	}
	if b := bias["net binary"]; !(b[3] > 0.02) || math.Abs(b[3]-b[2]) > 0.05*b[3] {
		t.Errorf("network: %v does not settle above zero", b)
	}
}

// stationaryBias is the total variation between the stationary law of DULA and π, from
// its transition matrix squared until it no longer changes.
func stationaryBias(p *Problem) float64 {
	n := p.Law.Len()
	matrix := make([][]float64, n)
	for k := range matrix {
		matrix[k] = dulaLaw.Row(p, nil, 0, k)
	}
	for range 40 {
		square := make([][]float64, n)
		for i := range square {
			square[i] = make([]float64, n)
			sum := 0.0
			for j, a := range matrix[i] {
				for k, b := range matrix[j] {
					square[i][k] += a * b
				}
			}
			for _, q := range square[i] {
				sum += q
			}
			for k := range square[i] {
				square[i][k] /= sum // rounding would grow
			}
		}
		matrix = square
	}
	tv := 0.0
	for k, q := range matrix[0] {
		tv += math.Abs(q-p.Law.P[k]) / 2
	}
	return tv
}
