package draft

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRate: short chains of an autoregressive process, in which a draw takes 200 steps, show how much
// more k steps are worth than one.
func TestRate(t *testing.T) {
	const rho, chains = 0.99, 4
	r := rand.New(rand.NewPCG(1, 2))
	var p Pilot
	jump := map[int]float64{}
	const repeats = 50
	for range repeats {
		for _, k := range []int{1, 2, 8} {
			a := math.Pow(rho, float64(k))
			for range chains {
				u := r.NormFloat64()
				for range measuring {
					v := a*u + math.Sqrt(1-a*a)*r.NormFloat64()
					jump[k] += (v - u) * (v - u) / (repeats * chains * measuring)
					p.u, u = append(p.u, v), v
				}
			}
		}
	}
	if got := p.rate(measurement{0, 1}); got != 0 {
		t.Errorf("chains that do not move have the rate %g", got)
	}
	for k, j := range jump {
		a := math.Pow(rho, float64(k))
		// Jumps have standard errors of 1.6%; the variance, of 600 chains, of 5%.
		if got, want := p.rate(measurement{j, 0.5}), 2*(1-a)/(1+a); math.Abs(got/want-1) > 4*0.055 {
			t.Errorf("%d steps: %g effective draws a second, want %g", k, got, want)
		}
	}
}
